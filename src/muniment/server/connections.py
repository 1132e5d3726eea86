"""A client's connection, which nobody can hold for nothing."""

from __future__ import annotations

from asyncio import Transport
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 64 << 10
"""The server below holds a request's line and headers, and asks nobody how long they may get."""

LEAST_BYTES = 64 << 10
"""What must move in `patience_seconds` while a request arrives or an answer leaves."""


class Connection(HttpToolsProtocol):
    """Ended where a request's head has no end, where a request or its body stops arriving, and
    where an answer is not taken. While the service itself works, nothing is asked of the client.
    """

    patience_seconds: ClassVar[float] = 60.0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to look after it."""
        super().connection_made(transport)
        self._arriving = self._in_head = self._is_new = True
        self._head_bytes = self._moved_bytes = self._unsent_bytes = 0
        self._was_stuck = self._resumed = False
        self._watch = self.loop.call_later(self.patience_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look after it no more."""
        self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; 431 for a head without end."""
        self._moved_bytes += len(data)
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MOST_HEAD_BYTES:
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
            self.transport.write(b"connection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins to arrive."""
        super().on_message_begin()
        self._arriving = self._is_new = True

    def on_headers_complete(self) -> None:
        """Its head has arrived."""
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """It has arrived."""
        self._arriving, self._in_head = False, True
        super().on_message_complete()

    def resume_writing(self) -> None:
        """The client took what was ready."""
        self._resumed = True
        super().resume_writing()

    def _look(self) -> None:
        if self._is_held_up():
            self.transport.abort()
            return
        self._is_new, self._moved_bytes, self._resumed = False, 0, False
        self._watch = self.loop.call_later(self.patience_seconds, self._look)

    def _is_held_up(self) -> bool:
        """Whether all of the time since the last look was spent waiting for the client."""
        waits = self._arriving and not self._is_new and not self.flow.read_paused
        if waits and self._moved_bytes < LEAST_BYTES:
            return True
        stuck, unsent = self._is_stuck(), self.transport.get_write_buffer_size()
        taken = self._unsent_bytes - unsent
        held = stuck and self._was_stuck and not self._resumed and taken < LEAST_BYTES
        self._was_stuck, self._unsent_bytes = stuck, unsent
        return held

    def _is_stuck(self) -> bool:
        return self.flow.write_paused or self.transport.is_closing()


def connections_for(seconds: float) -> type[Connection]:
    """Connections with this patience."""
    return type("PatientConnection", (Connection,), {"patience_seconds": seconds})
