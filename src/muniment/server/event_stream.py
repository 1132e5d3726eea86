"""An answer of server-sent events, sent as they become ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Events(Protocol):
    """Where the events come from."""

    async def take(self) -> bytes:
        """Those that are ready, once there are any; nothing at the end."""
        ...

    def leave(self) -> None:
        """Nobody takes them any more."""
        ...


class EventStream(Response):
    """What is ready together is sent together. A client that goes away is noticed, and the
    events' source told, also while none is ready."""

    media_type = "text/event-stream"

    def __init__(self, events: Events, headers: Mapping[str, str]) -> None:
        self.status_code = 200
        self.background = None
        self._events = events
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the events."""
        watch = asyncio.create_task(self._watch(receive))
        head = {"status": self.status_code, "headers": self.raw_headers}
        try:
            await send({"type": "http.response.start", **head})
            while events := await self._events.take():
                await send({"type": "http.response.body", "body": events, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            watch.cancel()
            self._events.leave()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._events.leave()
