"""Clients of a running service that hold what others need: half requests and unread answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.doubles.service import JWT_MODE, Service, bearer, token

SESSIONS = "/v1/chat/sessions"
IMPORT = "/v1/memory/import"
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
    return f"{line} HTTP/1.1\r\nHost: a\r\n{signed}Content-Length: 100000\r\n\r\n".encode()


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


def test_answers_that_nobody_takes_are_let_go(service: Service, held: ExitStack) -> None:
    with service.client(**bearer("mallory")) as client:
        for number in range(50):
            text = f"{number} " + "y" * 8000
            assert client.post("/v1/memory/memories", json={"content": text}).is_success
    ask = "GET /v1/memory/memories?limit=100 HTTP/1.1\r\nHost: a\r\n"
    ask += f"Authorization: Bearer {token('mallory')}\r\n\r\n"
    for _ in range(2):
        _sent(service, held, ask.encode() * 20)
    for wanted in (503, 200):  # both places are taken, and then free again
        assert any(_status(service) == wanted for _ in range(20_000))


def _status(service: Service) -> int:
    return httpx2.get(service.url + SESSIONS, headers=bearer()).status_code
