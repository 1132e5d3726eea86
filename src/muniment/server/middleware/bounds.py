"""Bounds on what a request may be: its path, its headers and its body."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.server.problems import Problem

MOST_PATH_BYTES = 4096
MOST_HEADER_BYTES = 16_384


class BoundsMiddleware:
    """Answers 414, 431 and 413 where path, headers or body exceed their bound (bytes).

    A body that states no length is counted as it comes.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, streamed: frozenset[str]) -> None:
        self._app = app
        self._max_body = max_body_bytes
        self._streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is within bounds."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is not None:
            await problem.response(scope)(scope, receive, send)
        elif scope["path"] in self._streamed:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, self._counted(receive), send)

    def _problem(self, scope: Scope) -> Problem | None:
        path = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
        if path > MOST_PATH_BYTES:
            return Problem(414, "path", f"the path must have at most {MOST_PATH_BYTES} bytes")
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if sum(len(name) + len(value) for name, value in headers) > MOST_HEADER_BYTES:
            said = f"the headers must have at most {MOST_HEADER_BYTES} bytes"
            return Problem(431, "headers", said)
        stated = dict(headers).get(b"content-length", b"0")
        too_long = stated.isdigit() and int(stated[:20]) > self._max_body
        return self._too_large() if too_long and scope["path"] not in self._streamed else None

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_body:
                raise HTTPException(413)  # what reads the body passes on this kind alone
            return message

        return counted

    def _too_large(self) -> Problem:
        return Problem(413, "body", f"the body must have at most {self._max_body} bytes")
