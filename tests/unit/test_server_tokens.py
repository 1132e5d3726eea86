"""Tokens that were verified: known until they end, or until their key is taken away."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jwt
import pytest

from muniment.server.identity import Authenticator
from muniment.server.keys import UnknownKey
from muniment.server.known_tokens import Known, KnownTokens
from muniment.server.problems import Problem
from muniment.server.settings import AuthSettings
from tests.doubles.service import SECRET, token

OTHER = "another secret of the tests, long enough too"


class _Keys:
    """A published set whose one key can be changed or taken away."""

    def __init__(self) -> None:
        self.held: str | None = SECRET
        self.asked = 0

    async def key(self, header: Mapping[str, Any]) -> str:
        self.asked += 1
        if self.held is None:
            raise UnknownKey
        return self.held


def _authenticator(keys: _Keys, clock: Any = time.time) -> Authenticator:
    settings = AuthSettings("jwt", secret=SECRET, algorithms=("HS256",))
    return Authenticator(settings, keys, clock=clock)


async def test_a_token_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    decode = jwt.decode
    monkeypatch.setattr(jwt, "decode", lambda *a, **k: decoded.append("") or decode(*a, **k))
    authenticator, ana = _authenticator(_Keys()), token()
    first = await authenticator.identify(ana)
    assert await authenticator.identify(ana) == first
    assert (await authenticator.identify(token("bo"))).user == "bo"
    assert len(decoded) == 2


@pytest.mark.parametrize("key", [None, OTHER])
async def test_a_known_token_is_refused_once_its_key_is_gone(key: str | None) -> None:
    keys, ana = _Keys(), token()
    authenticator = _authenticator(keys)
    await authenticator.identify(ana)
    keys.held = key
    with pytest.raises(Problem) as refused:
        await authenticator.identify(ana)
    assert refused.value.status == 401


async def test_a_refused_token_is_not_known() -> None:
    keys = _Keys()
    keys.held = OTHER
    authenticator, ana = _authenticator(keys), token()
    for _ in range(2):
        with pytest.raises(Problem):
            await authenticator.identify(ana)
    keys.held = SECRET
    assert (await authenticator.identify(ana)).user == "ana"


async def test_a_token_is_known_until_its_expiry_and_leeway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [float(int(time.time()))]
    authenticator = _authenticator(_Keys(), lambda: now[0])
    ana = token(exp=int(now[0]) + 60)
    await authenticator.identify(ana)
    decode = jwt.decode
    decoded: list[str] = []
    monkeypatch.setattr(jwt, "decode", lambda *a, **k: decoded.append("") or decode(*a, **k))
    now[0] += 60 + 30 - 1
    await authenticator.identify(ana)
    assert not decoded
    now[0] += 1
    await authenticator.identify(ana)
    assert decoded


def test_what_was_used_longest_ago_makes_room() -> None:
    known: KnownTokens[str] = KnownTokens(lambda: 0.0, most=2)
    for name in ("a", "b"):
        known.put(name, Known(name, 9.0, {}, None))
    assert known.get("a") is not None
    known.put("c", Known("c", 9.0, {}, None))
    assert known.get("b") is None
    assert known.get("a") is not None
