"""Every setting of the memory behind the service does what it says, under both prefixes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from muniment import MemoryOwner
from muniment.server.app import create_app
from muniment.server.services import Services
from muniment.server.settings import load_server_settings
from tests.doubles.app import url_of
from tests.doubles.openai_server import OpenAIServer
from tests.servers import session

MEMORIES, SEARCH = "/v1/memory/memories", "/v1/memory/search"
TEA = {"content": "Ana drinks green tea"}
Running = tuple[Services, httpx2.AsyncClient]
Named = tuple[str, str]


@pytest.fixture(params=[("MUNIMENT_", "sqlite"), ("HARBORRAG_", "postgres")], ids=lambda p: p[1])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> Named:
    """A prefix, and an empty store."""
    prefix, store = request.param
    return prefix, url_of(store, tmp_path)


@asynccontextmanager
async def running(named: Named, **values: str) -> AsyncIterator[Running]:
    """The service on settings that are no environment variables of this process."""
    prefix, url = named
    whole = {"DATABASE_URL": url, "EMBEDDER": "none", **values}
    given = {prefix + name: value for name, value in whole.items() if value}
    app = create_app(load_server_settings(given))
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield app.state.services, client


async def _stored(client: httpx2.AsyncClient, **more: str) -> httpx2.Response:
    return await client.post(MEMORIES, json={**TEA, **more})


@pytest.mark.parametrize(("name", "limit"), [("QUOTA_ENTRIES", "1"), ("QUOTA_TOKENS", "9")])
async def test_a_quota_is_held(named: Named, name: str, limit: str) -> None:
    async with running(named, **{name: limit}) as (_, client):
        assert (await _stored(client)).status_code == 201
        full = await client.post(MEMORIES, json={"content": "Ana lives in the town of Bonn now"})
        assert (full.status_code, full.json()["type"]) == (507, "urn:muniment:problem:quota")
        assert (await client.get("/v1/memory/usage")).json()["entries"] == 1


async def test_working_memory_is_kept_in_valkey(named: Named) -> None:
    kept = {"VALKEY_URL": session.address("valkey")}
    async with running(named, **kept) as (services, client):
        made = (await client.post("/v1/chat/sessions")).json()["session_id"]
        run = MemoryOwner("DEFAULT", None, "DEFAULT_USER", "token", made, "r1")
        await services.memory.manager.update(run, {"step": 1})
    async with running(named, **kept) as (services, client):
        assert await services.memory.manager.scratch(run) == {"step": 1}
        erased = (await client.delete(f"/v1/memory/sessions/{made}")).json()
        assert erased["working_states"] == 1
        assert await services.memory.manager.scratch(run) == {}


async def test_the_store_is_named_under_either_name(named: Named) -> None:
    for name in ("DATABASE_URL", "CONTROL_DB_URL"):
        place = {"DATABASE_URL": "", name: named[1]}
        async with running(named, **place) as (_, client):
            assert (await _stored(client)).status_code == 201
    async with running(named) as (_, client):
        assert len((await client.get(MEMORIES)).json()["memories"]) == 1


async def test_the_audit_log_is_written(named: Named, tmp_path: Path) -> None:
    log = "table" if "postgres" in named[1] else str(tmp_path / "audit.log")
    async with running(named, AUDIT_PATH=log) as (services, client):
        await _stored(client)
        found = await services.memory.store.verify_audit()
        assert found is not None
        assert (found.ok, found.records) == (True, 1)


async def test_the_file_is_encrypted(tmp_path: Path) -> None:
    named = "MUNIMENT_", url_of("sqlite", tmp_path)
    async with running(named, ENCRYPTION_KEY="k" * 16) as (_, client):
        await _stored(client)
    assert not (tmp_path / "memory.db").read_bytes().startswith(b"SQLite format 3")


async def test_embedder_and_ranking_are_the_ones_named(named: Named) -> None:
    unlike_in_words = {"query": "leaves steeped in hot water"}
    for embedder, ranking in (("local", "hybrid"), ("none", "learned")):
        async with running(named, EMBEDDER=embedder, RANKING=ranking) as (services, client):
            await _stored(client)
            found = (await client.post(SEARCH, json=unlike_in_words)).json()["memories"]
            assert len(found) == (embedder == "local")
            assert (await services.memory.store.describe())["ranking"] == ranking


@pytest.mark.parametrize(
    ("scope", "days"), [("SESSION", 3), ("USER", 4), ("PROJECT", 5), ("USER", 0)]
)
async def test_retention_sets_the_expiry_at_the_write(named: Named, scope: str, days: int) -> None:
    setting = {f"MEMORY_RETENTION_DAYS_{scope}": str(days)}
    where = {"scope": scope.lower(), "session_id": "s1", "project_id": "p1"}
    async with running(named, **setting) as (_, client):
        told = (await _stored(client, **where)).json()
        if days == 0:
            assert told["expires_at"] is None
        else:
            kept = _instant(told["expires_at"]) - _instant(told["created_at"])
            assert kept == timedelta(days=days)


async def test_memory_switched_off_recalls_and_extracts_nothing(named: Named) -> None:
    with OpenAIServer.running() as upstream:
        model = {"MODEL": "m", "MODEL_BASE_URL": upstream.url}
        async with running(named, MEMORY_ENABLED="false", **model) as (_, client):
            await _stored(client)
            assert (await client.post(SEARCH, json={"query": "tea"})).json() == {"memories": []}
            assert (await _extracted(client)) == {"memories": []}
            assert upstream.requests == []


async def test_extraction_alone_is_switched_off(named: Named) -> None:
    with OpenAIServer.running() as upstream:
        model = {"MODEL": "m", "MODEL_BASE_URL": upstream.url}
        async with running(named, MEMORY_EXTRACTION_ENABLED="no", **model) as (_, client):
            assert (await _extracted(client)) == {"memories": []}
            assert upstream.requests == []
        async with running(named, **model) as (_, client):
            await _extracted(client)
            assert len(upstream.requests) > 0


async def test_any_field_of_the_policy_is_a_setting(named: Named) -> None:
    fields = {"MEMORY_RECALL_TOP_K": "7", "MEMORY_EXTRACTION_PROJECT_SCOPE": "true"}
    async with running(named, **fields) as (services, _):
        policy = services.memory.policy
        assert (policy.recall_top_k, policy.extraction_project_scope) == (7, True)


async def _extracted(client: httpx2.AsyncClient) -> object:
    said = [{"role": "user", "content": "I live in Oslo"}]
    body = {"session_id": "s1", "messages": said}
    return (await client.post("/v1/memory/extract", json=body)).json()


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
