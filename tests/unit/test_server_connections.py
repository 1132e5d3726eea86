"""Clients that send without end, stop sending, or take nothing; and one tenant's share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from muniment.server.connections import LEAST_BYTES, MOST_HEAD_BYTES, Connection
from muniment.server.middleware.bounds import BoundsMiddleware
from muniment.server.middleware.crowding import CrowdingMiddleware, take_place
from muniment.server.problems import Problem

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n"


class _Transport(asyncio.Transport):
    """Holds what is written, and lets nobody take it unless told."""

    def __init__(self) -> None:
        super().__init__()
        self.unsent = 0
        self.written = b""
        self.closing = self.aborted = self.paused = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class _Loop:
    """A loop whose time passes when it is told."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def call_later(self, _: float, call: Callable[[], None]) -> asyncio.Handle:
        self.due.append(call)
        return asyncio.Handle(call, (), asyncio.get_running_loop())

    def create_task(self, work: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work)

    def pass_time(self) -> None:
        due, self.due = self.due, []
        for call in due:
            call()


class _Client:
    """A connection of an app that answers nothing."""

    def __init__(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()

        self.loop, self.transport = _Loop(), _Transport()
        config = uvicorn.Config(app, log_config=None)
        loop: Any = self.loop
        self.connection = Connection(config, ServerState(), {}, loop)
        self.connection.connection_made(self.transport)

    def sends(self, data: bytes) -> None:
        self.connection.data_received(data)

    def waits(self) -> bool:
        """Time passes; whether the connection is still there."""
        self.loop.pass_time()
        return not self.transport.aborted


@pytest.fixture
async def client() -> _Client:
    return _Client()


@pytest.mark.parametrize("begun", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n"])
async def test_a_head_without_end_is_refused(client: _Client, begun: bytes) -> None:
    client.sends(begun)
    lines = b"X: a\r\n" if begun.endswith(b"\n") else b"a" * 6
    for _ in range(MOST_HEAD_BYTES // 600):
        client.sends(lines * 100)
        assert not client.transport.closing
    client.sends(lines * 100)
    client.sends(lines * 100)
    assert client.transport.closing
    assert client.transport.written.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: a", HEAD, HEAD + b"{"])
async def test_a_request_that_stops_arriving_is_let_go(client: _Client, sent: bytes) -> None:
    if sent:
        client.sends(sent)
    assert client.waits()
    assert not client.waits()


async def test_a_request_that_arrives_slowly_is_waited_for(client: _Client) -> None:
    client.sends(HEAD)
    for _ in range(5):
        client.sends(b"x" * LEAST_BYTES)
        client.connection.flow.resume_reading()
        assert client.waits()
    client.sends(b"x")
    client.connection.flow.resume_reading()
    assert not client.waits()


async def test_while_the_service_works_nothing_is_asked_of_the_client(client: _Client) -> None:
    client.sends(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ in range(5):
        assert client.waits()
    client.sends(HEAD + b"x" * (1 << 20))  # more than is read ahead: the service is the slow one
    for _ in range(5):
        assert client.waits()


@pytest.mark.parametrize("ended", [False, True])
async def test_an_answer_that_is_not_taken_is_let_go(client: _Client, ended: bool) -> None:
    client.sends(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    client.connection.pause_writing()
    client.transport.unsent, client.transport.closing = 10 << 20, ended
    assert client.waits()
    for _ in range(5):
        client.transport.unsent -= LEAST_BYTES
        assert client.waits()
    if not ended:
        client.connection.resume_writing()
        client.connection.pause_writing()
        client.transport.unsent += 1 << 20
        assert client.waits()
    assert not client.waits()


async def test_one_tenant_leaves_places_to_others() -> None:
    done = asyncio.Event()
    refused: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            take_place(scope, scope["tenant"])
        except Problem as problem:
            refused.append(f"{scope['tenant']} {problem.status}")
            return
        await done.wait()

    crowd = CrowdingMiddleware(app, limit=16)
    calls: list[Awaitable[None]] = []

    async def asks(tenant: str, times: int) -> None:
        nothing: Any = None
        for _ in range(times):
            scope = {"type": "http", "path": "/v1/x", "tenant": tenant}
            calls.append(asyncio.create_task(crowd(scope, nothing, nothing)))
        await asyncio.sleep(0)

    await asks("many", 16)
    assert refused == ["many 503"] * 2
    await asks("few", 1)
    await asks("many", 1)
    assert refused == ["many 503"] * 3
    done.set()
    await asyncio.gather(*calls)
    await asks("many", 14)
    await asyncio.gather(*calls)
    assert refused == ["many 503"] * 3


async def test_bodies_that_wait_for_their_end_leave_room_for_small_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muniment.server.middleware.bounds.MOST_HELD_BYTES", 1 << 20)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["body"] = (await receive())["body"]

    bounds = BoundsMiddleware(app, max_body_bytes=4 << 20, streamed=frozenset())

    async def begun(size: int, *, more: bool) -> tuple[Any, asyncio.Task[None], list[Any]]:
        scope: dict[str, Any] = {"type": "http", "path": "/", "headers": []}
        sent: list[Any] = []
        parts = [{"type": "http.request", "body": b"x" * size, "more_body": more}]

        async def receive() -> Any:
            return parts.pop() if parts else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        task = asyncio.create_task(bounds(scope, receive, send))
        await asyncio.sleep(0)
        return scope, task, sent

    held = [(await begun(1 << 19, more=True))[1] for _ in range(2)]
    _, _, sent = await begun(1 << 19, more=False)
    assert sent[0]["status"] == 503
    small, _, _ = await begun(100, more=False)
    assert small["body"] == b"x" * 100
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    large, _, _ = await begun(1 << 19, more=False)
    assert len(large["body"]) == 1 << 19
