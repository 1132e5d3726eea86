"""A scriptable server on a loopback port that speaks OpenAI's protocol to real clients.

    with OpenAIServer.running() as server:
        server.queue(text("hello"), refuse_structured(), hang())
        client = AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0)

Each chat request takes the next queued reply; with none queued it gets `server.default`.
Embeddings are derived from the text, and take the next reply of `server.queue_embeddings`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True)
class Request:
    """One request as it came in: path, lower-case headers and the parsed body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def structured(self) -> bool:
        return "response_format" in self.body or "tools" in self.body

    @property
    def prompt(self) -> str:
        return "\n".join(str(message["content"]) for message in self.body["messages"])


@dataclass
class Exchange:
    """What a reply may do with the connection."""

    request: Request
    writer: asyncio.StreamWriter
    closing: asyncio.Event

    async def send(
        self, status: int, body: bytes, *, kind: str = "application/json", **headers: str
    ) -> None:
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}", f"Content-Type: {kind}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
        self.writer.write("\r\n".join(lines).encode() + body)
        await self.writer.drain()

    async def send_json(self, status: int, value: object, **headers: str) -> None:
        await self.send(status, json.dumps(value).encode(), **headers)


Reply = Callable[[Exchange], Awaitable[None]]


def _completion(model: str, content: str | None) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _chunk(model: str, delta: dict[str, str], finish: str | None = None) -> bytes:
    value = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def text(content: str | None, *, cut_after: int | None = None) -> Reply:
    """`content`, as server-sent events word by word where the request asks for a stream.

    `cut_after` words of a stream the connection is cut.
    """

    async def reply(exchange: Exchange) -> None:
        if exchange.request.body.get("stream"):
            await _stream(exchange, content or "", cut_after)
        else:
            await exchange.send_json(200, _completion(exchange.request.body["model"], content))

    return reply


class Gate:
    """A place in a stream where it waits: `reached` is set when it is there, `open` lets it on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()

    def open(self) -> None:
        """Let the stream go on."""
        self._opened.set()

    async def passed(self, exchange: Exchange) -> None:
        """Wait for `open`, or for the server to stop."""
        self.reached.set()
        opened = asyncio.create_task(asyncio.to_thread(self._opened.wait))
        closing = asyncio.create_task(exchange.closing.wait())
        await asyncio.wait({opened, closing}, return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        self._opened.set()  # no thread is left waiting
        await opened


def gated(content: str, gate: Gate, *, after: int = 1) -> Reply:
    """`content`, which waits at `gate` after so many words of a stream, or before a whole reply."""

    async def reply(exchange: Exchange) -> None:
        if exchange.request.body.get("stream"):
            await _stream(exchange, content, None, gate=gate, gate_after=after)
        else:
            await gate.passed(exchange)
            await exchange.send_json(200, _completion(exchange.request.body["model"], content))

    return reply


async def _stream(
    exchange: Exchange,
    content: str,
    cut_after: int | None,
    *,
    gate: Gate | None = None,
    gate_after: int = 1,
) -> None:
    writer, model = exchange.writer, exchange.request.body["model"]
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    writer.write(b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
    words = content.split(" ")
    events = [
        _chunk(model, {"content": (" " if place else "") + word})
        for place, word in enumerate(words)
    ]
    if cut_after is None:
        events += [_chunk(model, {}, "stop"), b"data: [DONE]\n\n"]
    for place, event in enumerate(events[:cut_after]):
        if gate is not None and place == gate_after:
            await gate.passed(exchange)
        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        await writer.drain()
    if cut_after is None:
        writer.write(b"0\r\n\r\n")


def tool_call(name: str, arguments: object, *, call_id: str = "call_1") -> Reply:
    """A reply that calls a tool."""

    async def reply(exchange: Exchange) -> None:
        body = _completion(exchange.request.body["model"], None)
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": name, "arguments": given}
        call = {"id": call_id, "type": "function", "function": function}
        body["choices"][0]["message"]["tool_calls"] = [call]
        body["choices"][0]["finish_reason"] = "tool_calls"
        if not exchange.request.body.get("stream"):
            await exchange.send_json(200, body)
            return
        (choice,) = body["choices"]
        choice["delta"] = {**choice.pop("message"), "tool_calls": [{"index": 0, **call}]}
        events = b"data: " + json.dumps(body).encode() + b"\n\ndata: [DONE]\n\n"
        await exchange.send(200, events, kind="text/event-stream")

    return reply


def structured(value: object) -> Reply:
    """`value` as the JSON text of a reply, whether it fits the asked schema or not."""
    return text(json.dumps(value))


def status(code: int, *, message: str = "no", **headers: str) -> Reply:
    """An error of the given code in OpenAI's shape."""

    async def reply(exchange: Exchange) -> None:
        error = {"message": message, "type": "error", "param": None, "code": None}
        await exchange.send_json(code, {"error": error}, **headers)

    return reply


def refuse_structured() -> Reply:
    """A provider that does not know the response format."""
    return status(400, message="'response_format' of type 'json_schema' is not supported")


def busy(*, retry_after: str = "0") -> Reply:
    """Too many requests, to be tried again after so many seconds."""
    return status(429, message="slow down", Retry_After=retry_after)


def hang() -> Reply:
    """Never answers."""

    async def reply(exchange: Exchange) -> None:
        await exchange.closing.wait()

    return reply


def slow(seconds: float, then: Reply) -> Reply:
    """`then`, after so many seconds or when the server stops."""

    async def reply(exchange: Exchange) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(exchange.closing.wait(), seconds)
        await then(exchange)

    return reply


def cut() -> Reply:
    """Half an answer, then the connection is gone."""

    async def reply(exchange: Exchange) -> None:
        exchange.writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"id": ')
        await exchange.writer.drain()
        exchange.writer.transport.abort()

    return reply


def rubbish(body: bytes = b"\xff\x00<not json", *, kind: str = "application/json") -> Reply:
    """Bytes that are no answer at all."""

    async def reply(exchange: Exchange) -> None:
        await exchange.send(200, body, kind=kind)

    return reply


def raw(value: object) -> Reply:
    """Well-formed JSON of any shape."""
    return rubbish(json.dumps(value).encode())


def derived_vector(content: str, dimension: int) -> list[float]:
    """A vector that depends on `content` alone."""
    seed = sha256(content.encode()).digest()
    return [(seed[place % len(seed)] + place) / 512 for place in range(dimension)]


@dataclass
class OpenAIServer:
    """The server's script and what it was asked; made by `running`."""

    dimension: int = 8
    default: Reply = field(default_factory=lambda: text("ok"))
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    _replies: deque[Reply] = field(default_factory=deque)
    _vectors: deque[Reply] = field(default_factory=deque)

    def queue(self, *replies: Reply) -> None:
        """Answers of the next chat requests, in order."""
        self._replies.extend(replies)

    def queue_embeddings(self, *replies: Reply) -> None:
        """Answers of the next embedding requests, in place of derived vectors."""
        self._vectors.extend(replies)

    @classmethod
    @contextmanager
    def running(cls, *, dimension: int = 8) -> Iterator[OpenAIServer]:
        """Serves on a free loopback port from a thread, which has ended on leaving."""
        server = cls(dimension=dimension)
        started = threading.Event()
        stop: list[Callable[[], None]] = []
        thread = threading.Thread(
            target=lambda: asyncio.run(server._serve(started, stop)), name="openai-double"
        )
        thread.start()
        started.wait()
        try:
            yield server
        finally:
            stop[0]()
            thread.join()

    async def _serve(self, started: threading.Event, stop: list[Callable[[], None]]) -> None:
        closing = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(closing.set))
        open_now: set[asyncio.Task[Any]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            open_now.add(task)
            try:
                await self._answer(reader, writer, closing)
            finally:
                open_now.discard(task)

        listener = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        started.set()
        await closing.wait()
        listener.close()
        await asyncio.gather(*open_now, return_exceptions=True)

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, closing: asyncio.Event
    ) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await _read(reader)
            self.requests.append(request)
            await self._reply_to(request)(Exchange(request, writer, closing))
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _reply_to(self, request: Request) -> Reply:
        if request.path.endswith("/embeddings"):
            return self._vectors.popleft() if self._vectors else self._derive
        if request.path.endswith("/chat/completions"):
            return self._replies.popleft() if self._replies else self.default
        return status(404)

    async def _derive(self, exchange: Exchange) -> None:
        body = exchange.request.body
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = [
            {
                "object": "embedding",
                "index": place,
                "embedding": derived_vector(one, self.dimension),
            }
            for place, one in enumerate(texts)
        ]
        await exchange.send_json(200, embeddings(rows, model=body["model"]))


def embeddings(rows: Sequence[Mapping[str, Any]], *, model: str = "m") -> dict[str, Any]:
    """The body of an embeddings answer."""
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": list(rows), "model": model, "usage": usage}


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(head[0].split(" ")[1], headers, json.loads(body) if body else {})
