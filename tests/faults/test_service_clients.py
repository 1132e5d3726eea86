"""Clients of a running service that hold what others need: half requests and unread answers."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from muniment.server.pipe import Pipe
from tests.doubles.service import JWT_MODE, Service, bearer, token

SESSIONS = "/v1/chat/sessions"
JSON = "Content-Type: application/json\r\n"
IMPORT, EXPORT = "/v1/memory/import", "/v1/memory/export"
PATIENCE = {"MUNIMENT_CLIENT_TIMEOUT_SECONDS": "1", "MUNIMENT_MAX_CONCURRENCY": "2"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("service")
    with Service.running(folder, **JWT_MODE, **PATIENCE) as running:
        yield running


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _sent(service: Service, held: ExitStack, data: bytes) -> socket.socket:
    place = urlsplit(service.url)
    client = held.enter_context(socket.socket())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(30)
    client.connect((place.hostname, place.port))
    client.sendall(data)
    return client


def _head(line: str, who: str, **claims: object) -> bytes:
    signed = f"Authorization: Bearer {token(who, **claims)}\r\n"
    return f"{line} HTTP/1.1\r\nHost: a\r\n{signed}{JSON}Content-Length: 100000\r\n\r\n".encode()


def _ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: a"])
def test_a_client_that_does_not_go_on_is_let_go(
    service: Service, held: ExitStack, sent: bytes
) -> None:
    assert _ended(_sent(service, held, sent))


def test_half_requests_take_nobodys_place(service: Service, held: ExitStack) -> None:
    unsigned = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"
    clients = [_sent(service, held, unsigned) for _ in range(4)]
    assert _status(service) == 200
    assert all(map(_ended, clients))


def test_half_an_import_stops_no_other_tenants(service: Service, held: ExitStack) -> None:
    line = f"POST {IMPORT}?tenant=slow"
    half = _sent(service, held, _head(line, "mallory", tenants=["slow"], role="admin") + b"{")
    exported = b'{"format":"muniment-entries","version":1,"count":0}\n'
    for tenant in ("acme", "slow"):
        headers = bearer("ana", tenants=[tenant], role="admin")
        answer = httpx2.post(
            f"{service.url}{IMPORT}?tenant={tenant}", headers=headers, content=exported
        )
        assert answer.status_code == (200 if tenant == "acme" else 503), answer.text
    assert _ended(half)


def _status(service: Service) -> int:
    return httpx2.get(service.url + SESSIONS, headers=bearer()).status_code


def test_exports_that_are_taken_slowly_keep_no_reader_from_others(
    tmp_path: Path, held: ExitStack
) -> None:
    service = held.enter_context(Service.running(tmp_path, **JWT_MODE))
    count, mallory = 1_500, bearer("mallory", tenants=["slow"], role="admin")
    lines = [{"format": "muniment-entries", "version": 1, "count": count}]
    entry = {"scope": "tenant=slow", "kind": "fact", "trust": "model"}
    lines += [{**entry, "text": f"{number} " + "y" * 8000} for number in range(count)]
    content = "\n".join(map(json.dumps, lines)).encode()
    place = f"{service.url}{IMPORT}?tenant=slow"
    assert httpx2.post(place, headers=mallory, content=content, timeout=60).status_code == 200
    head = _head(f"POST {EXPORT}?tenant=slow", "mallory", tenants=["slow"], role="admin")
    slow = _sent(service, held, head.replace(b"100000", b"2") + b"{}")
    assert slow.recv(12) == b"HTTP/1.1 200"
    assert _exported(service, "slow") == 503
    assert _exported(service, "acme") == 200
    assert _status(service) == 200
    slow.close()
    assert any(_exported(service, "slow") == 200 for _ in range(10_000))  # each takes its time


def _exported(service: Service, tenant: str) -> int:
    headers = bearer("ana", tenants=[tenant], role="admin")
    place = f"{service.url}{EXPORT}?tenant={tenant}"
    return httpx2.post(place, headers=headers, json={}, timeout=60).status_code


async def test_an_export_that_takes_too_long_is_broken_off() -> None:
    pipe = Pipe(seconds=0)
    part = b"x" * (1 << 20)
    assert await asyncio.to_thread(pipe.write, part) == len(part)
    with pytest.raises(BrokenPipeError):
        await asyncio.to_thread(pipe.write, part)
