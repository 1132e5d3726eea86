"""A stream that a store writes to from any thread, and a response reads as it comes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

_AHEAD_BYTES = 1 << 20
_MOST_BYTES = 64 << 20


class Pipe:
    """Write in one place, read in another. A thread that writes waits for the reader once a
    mebibyte is ahead; the event loop, which cannot wait, is refused past 64. BrokenPipeError
    once the reader has gone, and where all of it takes the reader more than `seconds`."""

    def __init__(self, *, seconds: float = 600.0) -> None:
        self._until = time.monotonic() + seconds
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._changed = threading.Condition()
        self._readable = asyncio.Event()
        self._parts: list[bytes] = []
        self._size = 0
        self._closed = False

    def seekable(self) -> bool:
        """What was read is gone: a writer cannot begin anew."""
        return False

    def write(self, data: bytes) -> int:
        """Hand `data` on."""
        with self._changed:
            if threading.get_ident() != self._loop_thread:
                left = self._until - time.monotonic()
                self._changed.wait_for(
                    lambda: self._closed or self._size < _AHEAD_BYTES, max(0.0, left)
                )
            late = self._size >= _AHEAD_BYTES and time.monotonic() >= self._until
            if self._closed or late or self._size > _MOST_BYTES:
                raise BrokenPipeError
            self._parts.append(data)
            self._size += len(data)
        self._loop.call_soon_threadsafe(self._readable.set)
        return len(data)

    def writelines(self, lines: Any) -> None:
        """Hand on each of `lines`."""
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Nobody reads any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def ended(self) -> None:
        """Nothing more will be written."""
        self._readable.set()

    async def chunks(self, writer: asyncio.Task[Any]) -> AsyncIterator[bytes]:
        """What `writer` writes, as it comes; its error where it fails."""
        writer.add_done_callback(lambda _: self.ended())
        try:
            while True:
                await self._readable.wait()
                self._readable.clear()
                if taken := self._take():
                    yield taken
                elif writer.done():
                    writer.result()
                    return
                if writer.done():
                    self._readable.set()
        finally:
            self.close()

    def _take(self) -> bytes:
        with self._changed:
            taken = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            self._changed.notify_all()
        return taken
