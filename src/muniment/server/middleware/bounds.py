"""Bounds on what a request may be: its path, its headers and its body."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.server.problems import BUSY_SECONDS, Problem

MOST_PATH_BYTES = 4096
MOST_HEADER_BYTES = 16_384
MOST_HELD_BYTES = 256 << 20
"""Of all bodies that are there or arriving; a small one is always taken."""

SMALL_BYTES = 64 << 10


class BoundsMiddleware:
    """Answers 414, 431 and 413 where path, headers or body exceed their bound (bytes).

    A body that states no length is counted as it comes. A request goes on when all of it has
    arrived, so that a slow sender takes nobody's room; a path in `streamed` reads by itself.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, streamed: frozenset[str]) -> None:
        self._app = app
        self._max_body = max_body_bytes
        self._streamed = streamed
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is within bounds."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        problem = self._problem(scope)
        streamed = scope["path"] in self._streamed
        try:
            if problem is None and not streamed:
                problem = await self._arrived(receive, body)
            if problem is not None:
                await problem.response(scope)(scope, receive, send)
            else:
                given = receive if streamed else _given(bytes(body), receive)
                await self._app(scope, given, send)
        finally:
            self._held -= len(body)

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

    async def _arrived(self, receive: Receive, body: bytearray) -> Problem | None:
        """Receive all of `body`; why it is not taken where it is not."""
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return Problem(408, "body", "the body did not arrive")
            part: bytes = message.get("body", b"")
            body += part
            self._held += len(part)
            more = message.get("more_body", False)
            if len(body) > self._max_body:
                return self._too_large()
            if self._held > MOST_HELD_BYTES and len(body) > SMALL_BYTES:
                said = "too many requests at once"
                return Problem(503, "crowded", said, retry_after=BUSY_SECONDS)
        return None

    def _too_large(self) -> Problem:
        return Problem(413, "body", f"the body must have at most {self._max_body} bytes")


def _given(body: bytes, receive: Receive) -> Receive:
    """The body at once, and then what comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return left.pop() if left else await receive()

    return given
