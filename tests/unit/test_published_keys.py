"""A published key set whose server is slow, gone, or says rubbish."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from aiohttp import ClientConnectionError
from cryptography.hazmat.primitives.asymmetric import rsa

from muniment.server.keys import FRESH_SECONDS, PAUSE_SECONDS, KeysUnavailable, PublishedKeys
from muniment.server.keys import UnknownKey as Unknown

KEY = rsa.generate_private_key(65537, 2048)
HELD = {"kid": "held"}


def _row(kid: object = "held", key: rsa.RSAPrivateKey = KEY, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**row, "kid": kid, **more}


class _Server:
    """Answers with `body`, once its gate is open; counts what it is asked."""

    def __init__(self, *rows: Any) -> None:
        self.body: bytes | None = json.dumps({"keys": rows or [_row()]}).encode()
        self.asked = 0
        self.reached, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.now = 1000.0
        client: Any = self
        self.keys = PublishedKeys("http://keys", client, clock=lambda: self.now)

    @asynccontextmanager
    async def get(self, _: str, **__: Any) -> AsyncIterator[Any]:
        self.asked += 1
        self.reached.set()
        await self.gate.wait()
        if self.body is None:
            raise ClientConnectionError
        yield self

    status = 200

    @property
    def content(self) -> Any:
        return self

    async def iter_any(self) -> AsyncIterator[bytes]:
        assert self.body is not None
        yield self.body


async def test_who_names_an_unknown_key_keeps_nobody_else_waiting() -> None:
    server = _Server()
    await server.keys.key(HELD)
    server.now += 1
    server.gate.clear()
    server.reached.clear()
    stranger = asyncio.create_task(server.keys.key({"kid": "unknown"}))
    await server.reached.wait()
    await server.keys.key(HELD)
    server.gate.set()
    with pytest.raises(Unknown):
        await stranger


async def test_where_the_server_fails_nobody_waits_for_its_next_answer() -> None:
    server = _Server()
    held = await server.keys.key(HELD)
    server.body, server.now = None, server.now + FRESH_SECONDS + 1
    assert await server.keys.key(HELD) is held
    server.gate.clear()
    server.reached.clear()
    server.now += PAUSE_SECONDS + 1
    for _ in range(3):
        assert await server.keys.key(HELD) is held
    await server.reached.wait()
    assert server.asked == 3
    server.body = json.dumps({"keys": [_row()]}).encode()
    server.gate.set()
    async with asyncio.timeout(10):
        while await server.keys.key(HELD) is held:  # noqa: ASYNC110 - it comes by itself
            await asyncio.sleep(0)
    server.now += 1
    await server.keys.key(HELD)
    assert server.asked == 3


async def test_without_any_key_those_who_wait_together_ask_once() -> None:
    server = _Server()
    server.body = None
    server.gate.clear()
    waiting = [asyncio.create_task(server.keys.key(HELD)) for _ in range(5)]
    await server.reached.wait()
    server.now += 5
    server.gate.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in answers] == [KeysUnavailable] * 5
    assert server.asked == 1
    server.body, server.now = json.dumps({"keys": [_row()]}).encode(), server.now + 1
    await server.keys.key(HELD)


@pytest.mark.parametrize(
    "row",
    [
        None, 5, [], {}, _row([]), _row({}), _row(7), _row("other", alg=[]), _row("other", n=[]),
        _row("other", use={}), {"kty": "EC", "crv": [], "x": 1}, {"kty": "oct", "k": "AAAA"},
    ],
)  # fmt: skip
async def test_a_row_of_rubbish_costs_itself(row: object) -> None:
    server = _Server(row, _row())
    await server.keys.key(HELD)
    assert server.asked == 1


@pytest.mark.parametrize("body", [b"[" * 100_000, b"null", b"\xff", b'{"keys": 5}', b"{}"])
async def test_a_set_that_cannot_be_read_is_no_keys(body: bytes) -> None:
    server = _Server()
    server.body = body
    with pytest.raises(KeysUnavailable):
        await server.keys.key(HELD)


async def test_a_short_key_and_a_secret_one_are_none() -> None:
    short = rsa.generate_private_key(65537, 1024)  # noqa: S505 - the one that must not do
    secret = jwt.algorithms.RSAAlgorithm.to_jwk(KEY, as_dict=True)
    for row in (_row(key=short), {**secret, "kid": "held"}):
        with pytest.raises(Unknown):
            await _Server(row).keys.key(HELD)
