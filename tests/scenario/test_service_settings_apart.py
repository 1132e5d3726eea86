"""Each row of the service's table of settings: set at one process, not so at the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from muniment import MemoryOwner, MemoryPolicy, MemoryRetention, open_memory
from tests.doubles.openai_server import OpenAIServer, structured
from tests.doubles.replicas_apart import DAYS, Apart, Tenant, apart_on

CHAT, SESSIONS = "/v1/chat/completions", "/v1/chat/sessions"
MEMORIES, SEARCH = "/v1/memory/memories", "/v1/memory/search"
IN_ALL = {"session_id": "s1", "project_id": "apollo"}
ANY_DAYS = {"session": 90, "user": 365, "project": None}


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def apart(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Apart]:
    with apart_on(request.param, tmp_path_factory.mktemp("apart")) as found:
        yield found


@pytest.fixture
def tenant(apart: Apart) -> Iterator[Tenant]:
    with ExitStack() as stack:
        yield Tenant(apart, stack)


@pytest.fixture
def upstream(apart: Apart) -> OpenAIServer:
    return apart.model


def _ask(client: httpx2.Client, content: str, session: str | None = None) -> str:
    body = {"messages": [{"role": "user", "content": content}], "session_id": session}
    answer = client.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["session_id"])


def _store(client: httpx2.Client, content: str, scope: str = "user") -> dict[str, Any]:
    answer = client.post(MEMORIES, json={"content": content, "scope": scope, **IN_ALL})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _found(client: httpx2.Client, query: str) -> list[str]:
    told = client.post(SEARCH, json={"query": query}).json()
    return [each["content"] for each in told["memories"]]


def _extracted(client: httpx2.Client, said: str) -> list[dict[str, Any]]:
    body = {"messages": [{"role": "user", "content": said}], **IN_ALL}
    answer = client.post("/v1/memory/extract", json=body)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["memories"]
    return rows


def _fact(content: str, scope: str) -> dict[str, Any]:
    return {
        "content": content, "memory_type": "fact", "scope": scope,
        "importance": 0.8, "entities": [], "replaces": "",
    }  # fmt: skip


def _kept_days(row: dict[str, Any]) -> float | None:
    if row["expires_at"] is None:
        return None
    ends, begins = (datetime.fromisoformat(row[name]) for name in ("expires_at", "updated_at"))
    return (ends - begins) / timedelta(days=1)


def test_memory_switched_off_is_a_short_window_and_nothing_else(
    tenant: Tenant, upstream: OpenAIServer
) -> None:
    off, plain = tenant("off", "ana"), tenant("plain", "ana")
    _store(off, "Ana drinks green tea")
    session = _ask(plain, "first")
    for said in ("second", "third"):
        _ask(off, said, session)
    assert _found(plain, "green tea") == ["Ana drinks green tea"]
    asked = len(upstream.requests)
    assert _found(off, "green tea") == []
    told = off.post(
        "/v1/memory/context", json={"question": "Which tea is it?", "session_id": session}
    ).json()
    assert [each["content"] for each in told["messages"]] == ["second", "ok", "third", "ok"]
    assert (told["summary"], told["recalled"], told["standalone_query"]) == (
        None,
        [],
        "Which tea is it?",
    )
    assert _extracted(off, "I live in Oslo") == []
    assert len(upstream.requests) == asked


def test_extraction_switched_off_leaves_recall(tenant: Tenant, upstream: OpenAIServer) -> None:
    silent, plain = tenant("silent", "ana"), tenant("plain", "ana")
    asked = len(upstream.requests)
    assert _extracted(silent, "I live in Oslo") == []
    assert len(upstream.requests) == asked
    upstream.queue(structured({"facts": [_fact("Ana lives in Oslo", "user")]}))
    assert [each["content"] for each in _extracted(plain, "I live in Oslo")] == [
        "Ana lives in Oslo"
    ]
    assert _found(silent, "Where does Ana live?") == ["Ana lives in Oslo"]
    assert _found(tenant("silent", "bo"), "Where does Ana live?") == []


def test_extraction_writes_for_the_project_where_it_is_let(
    tenant: Tenant, upstream: OpenAIServer
) -> None:
    let, plain = tenant("set", "ana"), tenant("plain", "ana")
    upstream.queue(structured({"facts": [_fact("Apollo flies on Monday", "project")]}))
    (shared,) = _extracted(let, "Apollo flies on Monday")
    upstream.queue(structured({"facts": [_fact("Apollo lands on Friday", "project")]}))
    (own,) = _extracted(plain, "Apollo lands on Friday")
    assert (shared["scope"], own["scope"]) == ("project", "session")
    for kind in ("set", "plain"):
        listed = tenant(kind, "bo").get(MEMORIES, params=IN_ALL).json()["memories"]
        assert [each["content"] for each in listed] == ["Apollo flies on Monday"]


def test_retention_holds_for_what_is_written_there(tenant: Tenant) -> None:
    kept = {"set": DAYS, "plain": ANY_DAYS}
    for kind, days in kept.items():
        for scope, wanted in days.items():
            row = _store(tenant(kind, "ana"), f"written where it is {kind}", scope)
            assert _kept_days(row) == wanted, (kind, scope)
    for kind, other in (("set", "plain"), ("plain", "set")):
        listed = tenant(other, "ana").get(MEMORIES, params=IN_ALL).json()["memories"]
        told = {
            each["scope"]: _kept_days(each) for each in listed if each["content"].endswith(kind)
        }
        assert told == kept[kind]


def test_a_summary_is_kept_anew_from_each_refresh(tenant: Tenant) -> None:
    here, there = tenant("set", "ana"), tenant("plain", "ana")
    session = here.post(SESSIONS).json()["session_id"]
    long = "word " * 400

    def refreshed(client: httpx2.Client) -> tuple[str, float | None]:
        for number in range(5):
            _ask(here, f"{number} {long}", session)
        body = {"question": "And then?", "session_id": session}
        told = client.post("/v1/memory/context", json=body).json()
        assert told["summary_written"] is True
        wanted = {"type": "summary", "scope": "session", "session_id": session}
        (row,) = client.get(MEMORIES, params=wanted).json()["memories"]
        return row["memory_id"], _kept_days(row)

    first, days = refreshed(here)
    assert days == DAYS["session"]
    assert refreshed(there) == (first, ANY_DAYS["session"])


async def test_what_is_expired_is_returned_nowhere_and_swept(apart: Apart, tenant: Tenant) -> None:
    owner = MemoryOwner(tenant.name, None, "ana", "a subject", "s1")
    policy = MemoryPolicy(retention=MemoryRetention(user_days=2))

    def before() -> datetime:
        return datetime.now(UTC) - timedelta(days=3)

    async with open_memory(apart.url, policy=policy, clock=before, embedder=None) as memory:
        await memory.remember(owner, "Ana drinks green tea")
    for kind in ("set", "plain"):
        client = tenant(kind, "ana")
        assert client.get(MEMORIES).json()["memories"] == []
        assert _found(client, "green tea") == []
    assert _swept(apart.url, tenant.name) == 1
    assert _swept(apart.url, tenant.name) == 0


def _swept(url: str, tenant: str) -> int:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "muniment", "sweep", "--tenant", tenant, "--yes", "--json"],
        env={**os.environ, "MUNIMENT_DATABASE_URL": url, "MUNIMENT_EMBEDDER": "none"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["swept"])


def test_users_are_told_apart_by_the_claim_that_is_set(tenant: Tenant) -> None:
    by_email, by_subject = tenant("set", "ana"), tenant("plain", "ana")
    session = _ask(by_email, "hello")
    place = f"{SESSIONS}/{session}/messages"
    assert len(by_subject.get(place).json()["messages"]) == 2
    assert by_email.get(place).status_code == 200
    assert tenant("plain", "a subject").get(place).status_code == 404
    assert tenant("set", "bo", sub="ana").get(place).status_code == 404
    assert tenant("set", "ana", email=None).get(place).status_code == 401


def test_a_store_named_by_its_other_name_is_the_same_store(tenant: Tenant) -> None:
    one, two = tenant("set", "ana"), tenant("plain", "ana")
    session = _ask(one, "first")
    assert _ask(two, "second", session) == session
    rows = one.get(f"{SESSIONS}/{session}/messages").json()["messages"]
    assert [each["content"] for each in rows] == ["first", "ok", "second", "ok"]
    gone = two.delete(f"{SESSIONS}/{session}").json()
    assert (gone["sessions"], gone["messages"]) == (1, 4)
    assert one.get(f"{SESSIONS}/{session}/messages").status_code == 404
