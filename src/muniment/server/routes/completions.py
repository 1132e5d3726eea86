"""`POST /v1/chat/completions`: OpenAI's shape with durable sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Header
from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse, Response, StreamingResponse

from muniment.server.completions.answering import DONE, Stream, event, whole
from muniment.server.completions.exchange import Exchange
from muniment.server.completions.opening import CHAT, Asked, Repeated, opened
from muniment.server.completions.repeating import as_chunks, told_again
from muniment.server.completions.request import CompletionRequest, checked_key, chosen_session
from muniment.server.event_stream import EventStream
from muniment.server.identity import Reader
from muniment.server.problems import Problem
from muniment.server.routes.direct import (
    KEY_HEADER,
    LONGEST_KEY,
    LONGEST_SESSION,
    SESSION_HEADER,
    DirectRoute,
)
from muniment.server.routes.documented import ITEM, problems
from muniment.server.services import Services, Serving
from muniment.server.upstream import ChatModel

router = APIRouter(prefix="/v1/chat", tags=["completions"], route_class=DirectRoute)

SessionHeader = Annotated[str | None, Header(alias=SESSION_HEADER, max_length=LONGEST_SESSION)]
KeyHeader = Annotated[str | None, Header(alias=KEY_HEADER, max_length=LONGEST_KEY)]


class CompletionAnswer(BaseModel):
    """OpenAI's chat completion, and ours beside it."""

    model_config = ConfigDict(extra="allow")
    session_id: str
    title: str | None
    memory_persisted: bool
    citations: list[dict[str, Any]]
    run_id: str | None


@router.post(
    "/completions",
    response_model=CompletionAnswer,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **problems(*ITEM, 409, 429, 502, 504),
    },
)
async def chat_completion(
    services: Serving,
    caller: Reader,
    request: CompletionRequest,
    session: SessionHeader = None,
    key: KeyHeader = None,
) -> Response:
    """Answer the last message in its session, with the newest three completed exchanges."""
    model = required_model(services)
    asked = Asked(
        services,
        caller,
        request,
        CHAT,
        chosen_session(request.session_id, session),
        checked_key(key),
        request.question(),
    )
    found = await opened(asked)
    if isinstance(found, Repeated):
        return again(await told_again(services, found), streamed=bool(request.stream))
    if request.stream:
        stream = Stream(found, model, request.options())
        stream.start()
        return EventStream(stream, headers_of(found))
    return await _whole(found, model, request)


def required_model(services: Services) -> ChatModel:
    """The configured model; Problem 503 that says what to set."""
    if services.model is None:
        raise Problem(
            503,
            "no-model",
            "no model is configured: set MUNIMENT_MODEL and MUNIMENT_MODEL_BASE_URL",
            retry_after=60,
        )
    return services.model


def headers_of(exchange: Exchange) -> dict[str, str]:
    """The session, told at once."""
    return session_header(exchange.identity.session_id)


def session_header(session_id: str) -> dict[str, str]:
    """The session's header; an id that a header cannot carry is told in the body alone."""
    return {SESSION_HEADER: session_id} if session_id.isascii() else {}


async def _whole(exchange: Exchange, model: ChatModel, request: CompletionRequest) -> Response:
    work = whole(exchange, model, request.options())
    try:
        body = await exchange.services.runs.start(work)
    except Problem as problem:
        problem.headers.update(headers_of(exchange))
        raise
    return JSONResponse(body, headers=headers_of(exchange))


def again(reply: dict[str, Any], *, streamed: bool) -> Response:
    headers = session_header(reply["session_id"])
    if not streamed:
        return JSONResponse(reply, headers=headers)
    events = [*map(event, as_chunks(reply)), DONE]
    return StreamingResponse(_each(events), headers=headers, media_type="text/event-stream")


async def _each(events: Iterable[bytes]) -> AsyncIterator[bytes]:
    for each in events:
        yield each
