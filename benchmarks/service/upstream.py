"""A model that takes a fixed time: ``python -m benchmarks.service.upstream SECONDS``.

It speaks OpenAI's protocol with kept connections, and tells in the answer's id how long it took by
its own clock, so that whoever asks can subtract it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

WORDS = 20


async def _serve(seconds: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                body = await _request(reader)
                answer = _streamed if body.get("stream") else _whole
                await answer(writer, seconds, time.perf_counter())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _request(reader: asyncio.StreamReader) -> dict[str, Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    found: dict[str, Any] = json.loads(await reader.readexactly(length))
    return found


async def _whole(writer: asyncio.StreamWriter, seconds: float, started: float) -> None:
    await asyncio.sleep(seconds)
    body = json.dumps(
        {
            "id": f"took-{time.perf_counter() - started:.6f}",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "word " * WORDS},
                }
            ],
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await writer.drain()


async def _streamed(writer: asyncio.StreamWriter, seconds: float, started: float) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for _ in range(WORDS):
        await asyncio.sleep(seconds / WORDS)
        _event(writer, started, {"content": "word "}, None)
    _event(writer, started, {}, "stop")
    done = b"data: [DONE]\n\n"
    writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(done), done))
    await writer.drain()


def _event(
    writer: asyncio.StreamWriter, started: float, delta: dict[str, str], finish: str | None
) -> None:
    chunk = {
        "id": f"took-{time.perf_counter() - started:.6f}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    event = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
