"""A page of another origin, in a browser on the machine of a service without credentials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.doubles.app import running_app
from tests.doubles.service import JWT_MODE, bearer

SESSIONS = "/v1/chat/sessions"
MEMORIES = "/v1/memory/memories"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:81", ""])
async def test_a_page_of_another_origin_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    async with running_app(monkeypatch) as (_, client):
        for kind in ("text/plain", "application/json"):
            headers = {"Origin": origin, "Content-Type": kind}
            for path in (MEMORIES, SESSIONS, "/v1/memory/import", "/v1/chat/completions"):
                answer = await client.post(path, content=b'{"content": "x"}', headers=headers)
                assert (answer.status_code, answer.json()["type"]) == (
                    403, "urn:muniment:problem:page",
                )  # fmt: skip
        assert (await client.get(MEMORIES)).json()["memories"] == []
        assert (await client.get(SESSIONS)).json()["sessions"] == []


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8000", "10.0.0.1", "[x"])
async def test_another_name_for_this_machine_reads_nothing(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    async with running_app(monkeypatch) as (_, client):
        await client.post(MEMORIES, json={"content": "Ana likes tea"})
        answer = await client.get(MEMORIES, headers={"Host": host})
        assert answer.status_code == 403
        assert "tea" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"])
async def test_this_machines_own_names_and_pages_are_served(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    async with running_app(monkeypatch) as (_, client):
        headers = {"Host": host, "Origin": f"http://{host}"}
        body = json.dumps({"content": "Ana likes tea"})
        headers["Content-Type"] = "application/json"
        assert (await client.post(MEMORIES, content=body, headers=headers)).status_code == 201


async def test_where_tokens_are_asked_for_any_name_is_served(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with running_app(monkeypatch, tmp_path, **JWT_MODE) as (_, client):
        named = {"Host": "memory.example", "Origin": "https://app.example"}
        assert (await client.get(SESSIONS, headers={**bearer(), **named})).status_code == 200
        assert (await client.get(SESSIONS, headers=named)).status_code == 401


async def test_who_listens_for_others_is_known_by_any_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_app(monkeypatch, MUNIMENT_HOST="box") as (_, client):
        ours = {"Host": "box:8000", "Origin": "http://box:8000"}
        assert (await client.get(SESSIONS, headers=ours)).status_code == 200
        assert (await client.get(SESSIONS, headers={**ours, "Host": "else"})).status_code == 403
