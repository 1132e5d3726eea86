"""`/v1/agent/completions` and runs: an agent's answer in OpenAI's shape, resumable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import JSONResponse, Response, StreamingResponse

from muniment.domain import checks
from muniment.ports import KeyedRequest
from muniment.server.bodies import StrictRoute
from muniment.server.completions.answering import DONE, event, failure, interrupted
from muniment.server.completions.exchange import Exchange
from muniment.server.completions.lease import SessionLease
from muniment.server.completions.opening import AGENT, Asked, Repeated, opened
from muniment.server.completions.prompt import history
from muniment.server.completions.repeating import as_chunks, told_again
from muniment.server.completions.request import CompletionRequest, checked_key, chosen_session
from muniment.server.identity import Caller, Reader
from muniment.server.problems import Problem, not_found, problem_of
from muniment.server.routes.completions import (
    CompletionAnswer,
    KeyHeader,
    SessionHeader,
    again,
    headers_of,
    required_model,
)
from muniment.server.routes.documented import ITEM, problems
from muniment.server.routes.sessions import required
from muniment.server.services import Services, Serving
from muniment.server.upstream import Message

if TYPE_CHECKING:
    from muniment.server.agent.asking import Tell
    from muniment.server.agent.runs import AgentRuns, Started

router = APIRouter(route_class=StrictRoute, prefix="/v1/agent", tags=["agent"])

RUN_HEADER = "Muniment-Run-Id"
RunId = Annotated[str, Path(min_length=1, max_length=256)]
_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
    **problems(*ITEM, 409, 429, 502, 504),
}


@router.post("/completions", response_model=CompletionAnswer, responses=_DOCUMENTED)
async def agent_completion(
    services: Serving,
    caller: Reader,
    request: CompletionRequest,
    session: SessionHeader = None,
    key: KeyHeader = None,
) -> Response:
    """Answer the last message by an agent with the operator's tools, and with the memory tools
    where `memory` is full. A run that fails is told in a header, and can be resumed."""
    runs = _required_runs(services)
    asked = Asked(
        services,
        caller,
        request,
        AGENT,
        chosen_session(request.session_id, session),
        checked_key(key),
        request.question(),
    )
    found = await opened(asked)
    if isinstance(found, Repeated):
        return again(await told_again(services, found), streamed=bool(request.stream))
    begun = {
        "session_id": found.identity.session_id,
        "question": found.question,
        "question_id": found.question_id,
        "project_id": request.project_id,
        "memory": request.memory == "full",
        "options": request.options(),
    }
    if request.stream:
        return await _told_as_it_comes(found, lambda tell: runs.begin(found, caller, begun, tell))
    return await _told(found, runs.begin(found, caller, begun))


@router.post(
    "/runs/{run_id}/resume",
    name="resume_run",
    response_model=CompletionAnswer,
    responses=problems(*ITEM, 409, 429, 502, 504),
)
async def resume(services: Serving, caller: Reader, run_id: RunId) -> Response:
    """Go on with a run that failed or was cancelled; one that was answered is told again."""
    runs = _required_runs(services)
    wanted = _identifier(run_id)
    started = await runs.started(caller, wanted)
    caller.project(started.project_id)
    answered = await _answered(services, caller, started, wanted)
    if answered is not None:
        return again(await told_again(services, answered), streamed=False)
    exchange = await _reopened(services, caller, started, wanted)
    return await _told(exchange, runs.resume(exchange, caller))


def _required_runs(services: Services) -> AgentRuns:
    required_model(services)
    if services.agent is None:
        said = "agent runs need the extra 'langgraph', and on PostgreSQL `muniment migrate` with it"
        raise Problem(503, "no-agent", said, retry_after=60)
    return services.agent


def _identifier(run_id: str) -> str:
    try:
        return checks.identifier("run_id", run_id)
    except ValueError:
        raise not_found("run") from None


async def _answered(
    services: Services, caller: Caller, started: Started, run_id: str
) -> Repeated | None:
    """The run's answer, where it is stored; Problem 404 where its session is not there."""
    identity = await required(services, caller, started.session_id)
    after: str | None = started.question_id
    while page := await services.memory.conversations.messages_after(
        identity, after_message_id=after, limit=200
    ):
        for message in page:
            if message.run_id == run_id and message.role == "assistant" and not message.partial:
                kept = KeyedRequest(
                    "", identity.session_id, started.question_id, message.message_id
                )
                return Repeated(kept, identity)
        after = page[-1].message_id
    return None


async def _reopened(services: Services, caller: Caller, started: Started, run_id: str) -> Exchange:
    identity = caller.conversation(started.session_id)
    seconds = services.settings.lease_seconds
    lease = SessionLease(services.memory.store.service, identity, seconds=seconds)
    await lease.take()
    exchange = Exchange(
        services, identity, lease, started.question, started.question_id, run_id=run_id
    )
    exchange.first = not await history(services.memory.conversations, identity, services.metrics)
    exchange.stored = True
    return exchange


async def _told(exchange: Exchange, work: Any) -> Response:
    """The answer of a run, which a client that leaves does not stop."""
    try:
        body = await exchange.services.runs.start(work)
    except Problem as problem:
        problem.headers.update(_headers(exchange))
        raise
    return JSONResponse(body, headers=_headers(exchange))


async def _told_as_it_comes(
    exchange: Exchange, begin: Callable[[Tell], Coroutine[Any, Any, Message]]
) -> Response:
    """The answer as server-sent events. A run that fails before its first word is an error of its
    own; one that fails later ends the stream with one. A client that leaves stops nothing."""
    told: asyncio.Queue[Message | None] = asyncio.Queue()
    run = exchange.services.runs.start(begin(told.put_nowait))
    run.add_done_callback(lambda _: told.put_nowait(None))
    first = await told.get()
    if first is None:
        try:
            answer = again(run.result(), streamed=True)
        except Problem as problem:
            problem.headers.update(_headers(exchange))
            raise
        answer.headers.update(_headers(exchange))
        return answer
    events = _events(first, told, run)
    return StreamingResponse(events, headers=_headers(exchange), media_type="text/event-stream")


async def _events(
    first: Message, told: asyncio.Queue[Message | None], run: asyncio.Task[Message]
) -> AsyncIterator[bytes]:
    chunk: Message | None = first
    while chunk is not None:
        yield event(chunk)
        chunk = await told.get()
    try:
        _, last = as_chunks(run.result())
    except (Exception, asyncio.CancelledError) as error:
        yield failure(problem_of(error) if isinstance(error, Exception) else interrupted())
        return
    yield event(last)
    yield DONE


def _headers(exchange: Exchange) -> dict[str, str]:
    return {**headers_of(exchange), RUN_HEADER: exchange.run_id or ""}
