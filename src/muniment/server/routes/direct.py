"""The route of completions, without what the framework does anew for each request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from muniment.domain.identifiers import DEFAULT_TENANT
from muniment.domain.strict_json import MalformedJsonError, read_json
from muniment.server.bodies import StrictRoute
from muniment.server.completions.request import CompletionRequest
from muniment.server.identity import caller_of

SESSION_HEADER = "Muniment-Session-Id"
KEY_HEADER = "Idempotency-Key"
LONGEST_SESSION, LONGEST_KEY = 256, 255
_BEARER = "Bearer "


class DirectRoute(StrictRoute):
    """Finds what the endpoint takes (`services`, `caller`, `request`, `session`, `key`) by itself
    where a request is plain, which halves what a completion costs the event loop. A request that
    is unusual or wrong goes the framework's way from its start, and gets its answer."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        messages = await _messages(receive) if scope["method"] == "POST" else []
        taken = await self._taken(scope, messages)
        if taken is None:
            await super().handle(scope, _again(messages, receive), send)
            return
        response = await self.endpoint(**taken)
        await response(scope, receive, send)

    async def _taken(self, scope: Scope, messages: Sequence[Message]) -> dict[str, Any] | None:
        """The endpoint's arguments; None for a request that is not plain."""
        headers = Headers(scope=scope)
        if not _is_plain(scope, headers):
            return None
        state = scope["app"].state
        try:
            body = read_json(b"".join(each["body"] for each in messages))
            caller = await caller_of(scope, _token(headers), DEFAULT_TENANT)
            request = CompletionRequest.model_validate(body)
        except (MalformedJsonError, KeyError, ValidationError):
            return None
        session, key = headers.get(SESSION_HEADER), headers.get(KEY_HEADER)
        return {
            "services": state.services,
            "caller": caller,
            "request": request,
            "session": session,
            "key": key,
        }


def _is_plain(scope: Scope, headers: Headers) -> bool:
    """JSON for the usual tenant, with headers of a length that the document allows."""
    return (
        not scope["query_string"]
        and headers.get("content-type") == "application/json"
        and headers.get("authorization", _BEARER).startswith(_BEARER)
        and len(headers.get(SESSION_HEADER, "")) <= LONGEST_SESSION
        and len(headers.get(KEY_HEADER, "")) <= LONGEST_KEY
    )


def _token(headers: Headers) -> str | None:
    given = headers.get("authorization")
    return None if given is None else given.removeprefix(_BEARER)


async def _messages(receive: Receive) -> list[Message]:
    """The request's body, as it comes."""
    messages = [await receive()]
    while messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages


def _again(messages: list[Message], receive: Receive) -> Receive:
    """What was received, and then what comes."""
    left = iter(messages)

    async def again() -> Message:
        return next(left, None) or await receive()

    return again
