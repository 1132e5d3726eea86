"""The completions' own way to its arguments answers as the framework's does."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
import pytest

from muniment.server.routes import direct
from tests.doubles.app import running_app
from tests.doubles.openai_server import OpenAIServer

CHAT = "/v1/chat/completions"
SECRET = "a secret of this test, long enough for HS256"
PLAIN = {"Content-Type": "application/json"}
BODY = {"messages": [{"role": "user", "content": "hello"}]}


def _token(**claims: Any) -> str:
    said = {"sub": "ana", "tenants": ["DEFAULT"], "exp": int(time.time()) + 3600, **claims}
    return jwt.encode(said, SECRET, algorithm="HS256")


BEARER = f"Bearer {_token()}"
REQUESTS: dict[str, tuple[dict[str, str], Any, str]] = {
    "plain": ({}, BODY, ""),
    "a charset": ({"Content-Type": "application/json; charset=utf-8"}, BODY, ""),
    "another spelling of the scheme": ({"Authorization": BEARER.replace("B", "b", 1)}, BODY, ""),
    "the usual tenant by name": ({}, BODY, "?tenant=DEFAULT"),
    "another tenant": ({}, BODY, "?tenant=other"),
    "a tenant that is not the usual one": (
        {"Authorization": f"Bearer {_token(tenants=['other'])}"}, BODY, "",
    ),
    "no token": ({"Authorization": ""}, BODY, ""),
    "another scheme": ({"Authorization": "Basic YTpi"}, BODY, ""),
    "a token that ran out": ({"Authorization": f"Bearer {_token(exp=1)}"}, BODY, ""),
    "a token of another": ({"Authorization": BEARER + "x"}, BODY, ""),
    "a session that is not there": ({"Muniment-Session-Id": "ses_none"}, BODY, ""),
    "a session that is too long": ({"Muniment-Session-Id": "s" * 300}, BODY, ""),
    "a key that is too long": ({"Idempotency-Key": "k" * 300}, BODY, ""),
    "no messages": ({}, {"messages": []}, ""),
    "a list": ({}, [], ""),
    "a name twice": ({}, b'{"messages": [], "messages": []}', ""),
    "no JSON": ({}, b"{", ""),
    "nothing": ({}, b"", ""),
    "no type": ({"Content-Type": "text/plain"}, BODY, ""),
}  # fmt: skip
STATUS = {
    "plain": 200,
    "a charset": 200,
    "another spelling of the scheme": 200,
    "the usual tenant by name": 200,
    "another tenant": 403,
    "a tenant that is not the usual one": 403,
    "no token": 401,
    "another scheme": 401,
    "a token that ran out": 401,
    "a token of another": 401,
    "a session that is not there": 404,
    "a session that is too long": 422,
    "a key that is too long": 422,
    "no messages": 422,
    "a list": 422,
    "a name twice": 422,
    "no JSON": 422,
    "nothing": 422,
    "no type": 422,
}


@pytest.mark.parametrize(("name", "status"), STATUS.items())
async def test_a_request_is_answered_as_by_the_framework(
    name: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, body, query = REQUESTS[name]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with OpenAIServer.running() as upstream:
        settings = {
            "MUNIMENT_MODEL": "m",
            "MUNIMENT_MODEL_BASE_URL": upstream.url,
            "MUNIMENT_AUTH_MODE": "jwt",
            "MUNIMENT_AUTH_SECRET": SECRET,
        }
        async with running_app(monkeypatch, **settings) as (_, client):

            async def asked() -> tuple[int, Any]:
                sent = {**PLAIN, "Authorization": BEARER, **headers}
                answer = await client.post(CHAT + query, content=content, headers=sent)
                return answer.status_code, _lasting(answer.json())

            own = await asked()
            monkeypatch.setattr(direct, "_is_plain", lambda *_: False)
            assert own == await asked()
            assert own[0] == status


def _lasting(answer: dict[str, Any]) -> dict[str, Any]:
    """What does not differ from request to request."""
    passing = {"request_id", "id", "session_id", "created", "message_id"}
    return {name: value for name, value in answer.items() if name not in passing}
