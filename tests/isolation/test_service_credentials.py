"""Every route, asked with every credential that must not do."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from fastapi import FastAPI

from tests.doubles.app import running_app
from tests.doubles.key_set import KeySet
from tests.doubles.requests import OPEN, REQUESTS, ask, routes_of
from tests.doubles.service import JWT_MODE, SECRET, bearer, token

ISSUER, AUDIENCE = "https://issuer.example", "muniment"
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def _private(key: Any) -> bytes:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def _public(key: Any) -> str:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


def _claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    whole = {
        "sub": "ana", "tenants": ["DEFAULT"], "role": "admin", "exp": now + 600, "nbf": now,
        "iss": ISSUER, "aud": AUDIENCE, **more,
    }  # fmt: skip
    return {name: value for name, value in whole.items() if value is not None}


def _signed(key: bytes | str, algorithm: str, headers: Any = None, **more: Any) -> str:
    return jwt.encode(_claims(**more), key, algorithm=algorithm, headers=headers)


def _unsigned() -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(_claims())}."


def _confused(pem: str) -> str:
    """Signed with the public key as if it were a shared secret."""
    import hashlib
    import hmac

    def part(value: dict[str, Any]) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    head = part({"alg": "HS256", "typ": "JWT"}) + b"." + part(_claims())
    tag = hmac.new(pem.encode(), head, hashlib.sha256).digest()
    return (head + b"." + base64.urlsafe_b64encode(tag).rstrip(b"=")).decode()


def _named_twice() -> str:
    """A token whose role two readers could take differently."""
    payload = json.dumps(_claims()).removesuffix("}") + ', "role": "reader"}'
    return jwt.PyJWS().encode(payload.encode(), _private(RSA_KEY), algorithm="RS256")


REFUSED: dict[str, Callable[[], str | None]] = {
    "no token": lambda: None,
    "not a token": lambda: "abc",
    "alg none": _unsigned,
    "the public key as a secret": lambda: _confused(_public(RSA_KEY)),
    "a shared secret": lambda: _signed(SECRET, "HS256"),
    "another key": lambda: _signed(_private(OTHER_RSA_KEY), "RS256"),
    "another kind of key": lambda: _signed(_private(EC_KEY), "ES256"),
    "an algorithm that is not allowed": lambda: _signed(_private(RSA_KEY), "RS512"),
    "expired": lambda: _signed(_private(RSA_KEY), "RS256", exp=int(time.time()) - 60),
    "no expiry": lambda: _signed(_private(RSA_KEY), "RS256", exp=None),
    "not yet valid": lambda: _signed(_private(RSA_KEY), "RS256", nbf=int(time.time()) + 60),
    "another issuer": lambda: _signed(_private(RSA_KEY), "RS256", iss="https://other.example"),
    "no issuer": lambda: _signed(_private(RSA_KEY), "RS256", iss=None),
    "another audience": lambda: _signed(_private(RSA_KEY), "RS256", aud="other"),
    "no user": lambda: _signed(_private(RSA_KEY), "RS256", sub=None),
    "a user that is no text": lambda: _signed(_private(RSA_KEY), "RS256", sub=None, uid=7),
    "a blank user": lambda: _signed(_private(RSA_KEY), "RS256", sub=" "),
    "the shared identity": lambda: _signed(_private(RSA_KEY), "RS256", sub="DEFAULT_USER"),
    "a claim named twice": _named_twice,
    "an unknown role": lambda: _signed(_private(RSA_KEY), "RS256", role="root"),
    "tenants that are no list": lambda: _signed(_private(RSA_KEY), "RS256", tenants={"a": 1}),
}


@pytest.fixture
async def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[FastAPI, httpx2.AsyncClient]]:
    key = tmp_path / "key.pem"
    key.write_text(_public(RSA_KEY))
    settings = {
        "MUNIMENT_AUTH_MODE": "jwt",
        "MUNIMENT_AUTH_PUBLIC_KEY_FILE": str(key),
        "MUNIMENT_AUTH_ISSUER": ISSUER,
        "MUNIMENT_AUTH_AUDIENCE": AUDIENCE,
    }
    async with running_app(monkeypatch, **settings) as found:
        yield found


async def test_every_route_is_asked_here(running: tuple[FastAPI, httpx2.AsyncClient]) -> None:
    assert set(routes_of(running[0])) == set(REQUESTS) | OPEN


@pytest.mark.parametrize("case", REFUSED)
async def test_no_route_answers_a_credential_that_is_not_valid(
    running: tuple[FastAPI, httpx2.AsyncClient], case: str
) -> None:
    _, client = running
    bad = REFUSED[case]()
    headers = {} if bad is None else {"Authorization": f"Bearer {bad}"}
    for route in REQUESTS:
        answer = await ask(client, route, headers=headers)
        assert answer.status_code == 401, (route, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "detail" in answer.json()


async def test_every_route_follows_a_key_set_that_rotates(monkeypatch: pytest.MonkeyPatch) -> None:
    with KeySet.running() as keys:
        keys.rotate("k1")
        settings = {"MUNIMENT_AUTH_MODE": "jwt", "MUNIMENT_AUTH_JWKS_URL": keys.url}
        async with running_app(monkeypatch, **settings) as (_, client):

            async def asked(route: Any, signed: str) -> int:
                headers = {"Authorization": f"Bearer {signed}"}
                return (await ask(client, route, headers=headers)).status_code

            for route in REQUESTS:
                assert await asked(route, keys.signed("k1", role="admin")) not in (401, 403, 500)
            old = keys.keys["k1"]
            keys.rotate("k2")
            for route in REQUESTS:
                assert await asked(route, keys.signed("k2", role="admin")) not in (401, 403, 500)
                assert await asked(route, keys.signed("k1", old, role="admin")) == 401, route


async def test_the_right_credential_gets_further_on_every_route(
    running: tuple[FastAPI, httpx2.AsyncClient],
) -> None:
    _, client = running
    headers = {"Authorization": f"Bearer {_signed(_private(RSA_KEY), 'RS256')}"}
    for route in REQUESTS:
        answer = await ask(client, route, headers=headers)
        assert answer.status_code not in (401, 403, 500), (route, answer.text)


async def test_no_route_answers_for_a_tenant_that_is_not_the_tokens(
    running: tuple[FastAPI, httpx2.AsyncClient],
) -> None:
    _, client = running
    headers = {"Authorization": f"Bearer {_signed(_private(RSA_KEY), 'RS256', tenants=['acme'])}"}
    for tenant in ("DEFAULT", "acme-corp", "ACME", "*", "acme%"):
        for route in REQUESTS:
            answer = await ask(client, route, headers=headers, params={"tenant": tenant})
            assert answer.status_code == 403, (route, answer.text)
    for route in REQUESTS:
        answer = await ask(client, route, headers=headers, params={"tenant": "acme"})
        assert answer.status_code not in (401, 403, 500), (route, answer.text)


async def test_lower_roles_are_refused_what_is_for_higher_ones(
    running: tuple[FastAPI, httpx2.AsyncClient],
) -> None:
    _, client = running
    for role in ("reader", "editor", None):
        signed = _signed(_private(RSA_KEY), "RS256", role=role)
        for route, request in REQUESTS.items():
            answer = await ask(client, route, headers={"Authorization": f"Bearer {signed}"})
            assert (answer.status_code == 403) == request.admin, (route, role, answer.text)


async def test_claims_are_read_under_the_names_that_are_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"USER_ID": "uid", "TENANTS": "orgs", "ROLE": "grade", "PROJECTS": "teams"}
    settings = {f"MUNIMENT_AUTH_{name}_CLAIM": claim for name, claim in names.items()}
    async with running_app(monkeypatch, **JWT_MODE, **settings) as (_, client):

        async def asked(**claims: Any) -> tuple[int, Any]:
            body = {"content": "Apollo flies", "scope": "project", "project_id": "apollo"}
            headers, params = bearer("someone", **claims), {"tenant": "acme"}
            told = await client.post(
                "/v1/memory/memories", json=body, headers=headers, params=params
            )
            return told.status_code, told.json().get("own")

        named = {"uid": "ana", "orgs": ["acme"], "grade": "editor", "teams": ["apollo"]}
        assert await asked(**named) == (201, True)
        assert (await asked(**{**named, "uid": None}))[0] == 401
        assert (await asked(**{**named, "orgs": None, "tenants": ["acme"]}))[0] == 403
        assert (await asked(**{**named, "grade": None, "role": "editor"}))[0] == 403
        assert (await asked(**{**named, "teams": None, "projects": ["apollo"]}))[0] == 404
        assert await asked(**{**named, "uid": "bo"}) == (201, False)


async def test_clock_skew_is_borne_within_its_bound(
    running: tuple[FastAPI, httpx2.AsyncClient],
) -> None:
    _, client = running
    for skew, answer in ((-20, 200), (-40, 401)):
        signed = _signed(_private(RSA_KEY), "RS256", exp=int(time.time()) + skew)
        headers = {"Authorization": f"Bearer {signed}"}
        found = await client.get("/v1/chat/sessions", headers=headers)
        assert found.status_code == answer


async def test_mode_none_is_one_shared_identity_in_one_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_app(monkeypatch) as (_, client):
        assert (await client.get("/v1/chat/sessions")).status_code == 200
        refused = await client.get("/v1/chat/sessions", params={"tenant": "acme"})
        assert refused.status_code == 403


async def test_sessions_of_the_shared_identity_are_not_shown_to_a_signed_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_app(monkeypatch, tmp_path) as (_, client):
        made = (await client.post("/v1/chat/sessions")).json()["session_id"]
    settings = {"MUNIMENT_AUTH_MODE": "jwt", "MUNIMENT_AUTH_SECRET": SECRET}
    async with running_app(monkeypatch, tmp_path, **settings) as (_, client):
        for user in ("ana", "DEFAULT"):
            headers = {"Authorization": f"Bearer {token(user, role='admin')}"}
            listed = (await client.get("/v1/chat/sessions", headers=headers)).json()
            assert listed["sessions"] == []
            place = f"/v1/chat/sessions/{made}/messages"
            assert (await client.get(place, headers=headers)).status_code == 404
