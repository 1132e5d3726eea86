"""A model that takes its time: ``python -m benchmarks.service.upstream SECONDS SPREAD``.

An answer takes from ``SECONDS * (1 - SPREAD)`` to ``SECONDS * (1 + SPREAD)``, evenly spread.

It speaks OpenAI's protocol with kept connections, and tells in the answer's id how long it took by
its own clock, so that whoever asks can subtract it. It shares the machine with what is measured,
so it does as little as it can: it looks for one field of a request, and fills in ready-made text.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import cast

import uvloop

WORDS = 20


def _ready(kind: str, choice: dict[str, object]) -> str:
    """A reply's JSON, into whose id the time is filled by `%`."""
    shape = {"id": "took-%.6f", "object": kind, "created": 1, "model": "m"}
    return json.dumps({**shape, "choices": [{"index": 0, **choice}]})


_CHUNK = "chat.completion.chunk"
_MESSAGE = {"role": "assistant", "content": "word " * WORDS}
_REPLY = _ready("chat.completion", {"finish_reason": "stop", "message": _MESSAGE})
_DELTA = _ready(_CHUNK, {"delta": {"content": "word "}, "finish_reason": None})
_END = _ready(_CHUNK, {"delta": {}, "finish_reason": "stop"})
_WHOLE_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_DONE = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


class Model(asyncio.Protocol):
    """One connection: a request at a time."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, spread: float, chance: random.Random
    ) -> None:
        self._loop, self._chance = loop, chance
        self._least, self._most = seconds * (1 - spread), seconds * (1 + spread)
        self._held = b""
        self._started = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answers go there."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Begin to answer once the request is whole."""
        self._held += data
        head, found, body = self._held.partition(b"\r\n\r\n")
        if not found:
            return
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        if len(body) < int(length):
            return
        self._held, self._started = b"", time.perf_counter()
        seconds = self._chance.uniform(self._least, self._most)
        if b'"stream": true' in body or b'"stream":true' in body:
            self._transport.write(_STREAM_HEAD)
            self._loop.call_later(seconds / WORDS, self._stream, WORDS, seconds)
        else:
            self._loop.call_later(seconds, self._whole)

    def _whole(self) -> None:
        body = _REPLY % (time.perf_counter() - self._started)
        self._transport.write((_WHOLE_HEAD.format(len(body)) + body).encode())

    def _stream(self, left: int, seconds: float) -> None:
        self._event(_DELTA)
        if left > 1:
            self._loop.call_later(seconds / WORDS, self._stream, left - 1, seconds)
            return
        self._event(_END)
        self._transport.write(_DONE)

    def _event(self, shape: str) -> None:
        event = f"data: {shape % (time.perf_counter() - self._started)}\n\n"
        self._transport.write(f"{len(event):x}\r\n{event}\r\n".encode())


async def _serve(seconds: float, spread: float) -> None:
    loop, chance = asyncio.get_running_loop(), random.Random(1)
    server = await loop.create_server(
        lambda: Model(loop, seconds, spread, chance), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(float(sys.argv[1]), float(sys.argv[2])))
