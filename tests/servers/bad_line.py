"""A line to PostgreSQL that can hang, and break just before or after a commit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_COMMIT = b"COMMIT\x00"
_CHUNK = 1 << 16


class BadLine:
    """Passes bytes on, as long as nothing else is asked of it."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.breaks: str | None = None
        self.broken = 0
        self.meanwhile: Callable[[], object] = lambda: None

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str) -> AsyncIterator[BadLine]:
        """A line to the server of `url`, closed at the end of the block."""
        line = cls(url)
        server = await asyncio.start_server(line._carry, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        login, _, _ = line._parts.netloc.rpartition("@")
        line.url = line._parts._replace(netloc=f"{login}@127.0.0.1:{port}").geturl()
        try:
            yield line
        finally:
            server.close()
            for task in list(line._tasks):
                task.cancel()
            await asyncio.gather(*line._tasks, return_exceptions=True)

    def hang(self) -> None:
        """Pass nothing on any more, neither way."""
        self._flowing.clear()

    def go_on(self) -> None:
        """Pass everything on again."""
        self._flowing.set()

    def break_commit(self, when: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Cut the line at the next commit: "before" the server hears of it, or "after"; what
        befalls it `meanwhile` has happened when the client hears that it is cut.
        """
        self.breaks, self.meanwhile = when, meanwhile

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.CancelledError):  # the test is over
            try:
                await self._joined(reader, writer)
            finally:
                writer.transport.abort()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(
            self._parts.hostname, self._parts.port
        )
        cut = asyncio.Event()
        ways = [
            asyncio.ensure_future(self._upward(reader, to_server, cut)),
            asyncio.ensure_future(self._downward(from_server, writer, cut)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _upward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(_CHUNK):
            await self._flowing.wait()
            if _COMMIT in data and self.breaks is not None:
                when, self.breaks = self.breaks, None
                self.broken += 1
                if when == "before":
                    return
                cut.set()  # the answer does not come back
            writer.write(data)
            await writer.drain()

    async def _downward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(_CHUNK):
            await self._flowing.wait()
            if cut.is_set():
                await asyncio.to_thread(self.meanwhile)
                return
            writer.write(data)
            await writer.drain()
