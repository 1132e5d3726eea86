"""Export and import over HTTP, as streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.doubles.app import running_app, url_of
from tests.doubles.service import JWT_MODE, bearer

ADMIN = bearer("root", tenants=["acme", "other"], role="admin")


@pytest.fixture(params=["sqlite", "postgres", "in_memory"])
async def client(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx2.AsyncClient]:
    store = {"MUNIMENT_DATABASE_URL": url_of(request.param, tmp_path)}
    async with running_app(monkeypatch, **JWT_MODE, **store) as (_, found):
        yield found


async def _remember(client: httpx2.AsyncClient, user: str, count: int, size: int = 20) -> None:
    headers = bearer(user, tenants=["acme"])
    for number in range(count):
        content = f"{user} {number} " + "word " * size
        answer = await client.post(
            "/v1/memory/memories", json={"content": content}, headers=headers,
            params={"tenant": "acme"},
        )  # fmt: skip
        assert answer.status_code == 201


async def _export(client: httpx2.AsyncClient, tenant: str = "acme", **body: Any) -> bytes:
    answer = await client.post(
        "/v1/memory/export", json=body, headers=ADMIN, params={"tenant": tenant}
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return answer.content


async def _import(
    client: httpx2.AsyncClient, content: bytes, tenant: str = "acme", **params: Any
) -> httpx2.Response:
    return await client.post(
        "/v1/memory/import", content=content, headers=ADMIN, params={"tenant": tenant, **params}
    )


def _texts(exported: bytes) -> list[str]:
    return [json.loads(line)["text"] for line in exported.splitlines()[1:]]


async def test_hazard_26_export_wipe_import_gives_the_same_export_again(
    client: httpx2.AsyncClient,
) -> None:
    await _remember(client, "ana", 5)
    await _remember(client, "bo", 2)
    before = await _export(client)
    assert len(_texts(before)) == 7
    for user in ("ana", "bo"):
        place = f"/v1/memory/users/{user}"
        await client.delete(place, headers=ADMIN, params={"tenant": "acme"})
    assert _texts(await _export(client)) == []
    told = (await _import(client, before, max_trust="owner")).json()
    assert told == {
        "imported": 7, "skipped_duplicates": 0, "dropped_links": 0, "sessions": 0, "messages": 0,
    }  # fmt: skip
    assert _texts(await _export(client)) == _texts(before)
    again = (await _import(client, before, max_trust="owner")).json()
    assert (again["imported"], again["skipped_duplicates"]) == (0, 7)


async def test_an_export_selects_and_an_import_stays_in_its_tenant(
    client: httpx2.AsyncClient,
) -> None:
    await _remember(client, "ana", 2)
    await _remember(client, "bo", 3)
    hers = await _export(client, user_id="ana")
    assert len(_texts(hers)) == 2
    refused = await _import(client, hers, tenant="other")
    assert refused.status_code == 422
    assert "ana" not in refused.text
    assert (await _import(client, hers, tenant="other", rescope=True)).json()["imported"] == 2
    assert len(_texts(await _export(client, "other"))) == 2


async def test_a_bad_line_stores_nothing_and_is_named_without_its_text(
    client: httpx2.AsyncClient,
) -> None:
    await _remember(client, "ana", 2)
    good = await _export(client)
    for bad in (
        good.replace(b'"trust":"untrusted"', b'"trust":"kumquat"'), good[:-20], b"", b"[" * 60_000,
        good + b"{}\n", b"\xff\xfe kumquat\n",
    ):  # fmt: skip
        refused = await _import(client, bad, tenant="other", rescope=True)
        assert refused.status_code == 422
        assert "kumquat" not in refused.text
    assert _texts(await _export(client, "other")) == []


async def test_a_large_export_comes_in_parts_and_whole(client: httpx2.AsyncClient) -> None:
    await _remember(client, "ana", 60, size=1500)
    assert len(_texts(await _export(client))) == 60


async def _titled_session(client: httpx2.AsyncClient, user: str, title: str) -> str:
    made = await client.post(
        "/v1/chat/sessions", json={"title": title}, headers=bearer(user, tenants=["acme"]),
        params={"tenant": "acme"},
    )  # fmt: skip
    return str(made.json()["session_id"])


async def _titles(client: httpx2.AsyncClient, user: str, tenant: str) -> list[str]:
    told = await client.get(
        "/v1/chat/sessions", headers=bearer(user, tenants=[tenant]), params={"tenant": tenant}
    )
    return [each["title"] for each in told.json()["sessions"]]


async def test_conversations_go_along_where_they_are_asked_for(client: httpx2.AsyncClient) -> None:
    await _remember(client, "ana", 1)
    await _titled_session(client, "ana", "Tea")
    await _titled_session(client, "bo", "Coffee")
    alone = await _export(client)
    whole = await _export(client, conversations=True)
    hers = await _export(client, conversations=True, user_id="ana")
    assert len(_texts(alone)) == 1
    assert len(whole.splitlines()) == 4
    assert (b"Coffee" in whole, b"Coffee" in hers) == (True, False)
    refused = await _import(client, whole, tenant="other", rescope=True)
    assert refused.status_code == 422
    assert await _titles(client, "ana", "other") == []
    told = await _import(client, whole, tenant="other", rescope=True, conversations=True)
    assert (told.json()["imported"], told.json()["sessions"]) == (1, 2)
    assert await _titles(client, "ana", "other") == ["Tea"]
    again = await _import(client, whole, tenant="other", rescope=True, conversations=True)
    assert (again.json()["imported"], again.json()["sessions"]) == (0, 0)
