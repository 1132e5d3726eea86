"""Each row of the service's tables of routes: done at one replica, seen at the other."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.doubles.openai_server import structured, text
from tests.doubles.replicas import SESSION_DAYS, Person, Replicas

CHAT = "/v1/chat/completions"
SESSIONS, MEMORIES = "/v1/chat/sessions", "/v1/memory/memories"
NOBODYS = "mem_01m8nobodys"


@pytest.fixture
def ana(person: Person) -> tuple[httpx2.Client, httpx2.Client]:
    return person("ana"), person("ana", at=1)


Ana = tuple[httpx2.Client, httpx2.Client]


def _pages(ana: Ana, path: str, rows: str, cursor: str, **params: Any) -> list[dict[str, Any]]:
    """Every row, each page from the other replica."""
    found: list[dict[str, Any]] = []
    place: dict[str, Any] = {}
    for turn in range(100):
        page = ana[turn % 2].get(path, params={**params, **place}).json()
        found += page[rows]
        if page["next_cursor"] is None:
            break
        place = {cursor: page["next_cursor"]}
    return found


def _said(content: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


def _stored(client: httpx2.Client, content: str, **more: Any) -> dict[str, Any]:
    answer = client.post(MEMORIES, json={"content": content, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _contents(client: httpx2.Client, **params: Any) -> list[str]:
    return [each["content"] for each in client.get(MEMORIES, params=params).json()["memories"]]


def test_sessions_are_listed_by_kind_newest_activity_first(ana: Ana) -> None:
    here, there = ana
    made = [ana[turn % 2].post(SESSIONS).json()["session_id"] for turn in range(21)]
    agents = there.post("/v1/agent/sessions").json()["session_id"]
    here.post(CHAT, json=_said("hello", session_id=made[3]))
    wanted = [made[3], *(each for each in made[::-1] if each != made[3])]
    first = there.get(SESSIONS).json()
    assert [each["session_id"] for each in first["sessions"]] == wanted[:20]
    whole = _pages(ana, SESSIONS, "sessions", "cursor", limit=9)
    assert [each["session_id"] for each in whole] == wanted
    assert set(whole[0]) == {
        "session_id", "kind", "title", "created_at", "updated_at", "message_count",
    }  # fmt: skip
    listed = here.get("/v1/agent/sessions").json()["sessions"]
    assert [(each["session_id"], each["kind"]) for each in listed] == [(agents, "agent")]
    for limit in ("0", "101", "x"):
        assert here.get(SESSIONS, params={"limit": limit}).status_code == 422
    assert here.get(SESSIONS, params={"limit": "100"}).status_code == 200
    assert here.get(SESSIONS, params={"cursor": "rubbish"}).status_code == 422


def test_a_session_is_made_with_a_title_or_without(ana: Ana) -> None:
    here, there = ana
    made = here.post(SESSIONS, json={"title": "Tea"})
    assert made.status_code == 201
    assert {**made.json(), "session_id": ""} == {"session_id": "", "kind": "chat", "title": "Tea"}
    here.post(SESSIONS)
    rows = there.get(SESSIONS).json()["sessions"]
    assert [(each["title"], each["message_count"]) for each in rows] == [(None, 0), ("Tea", 0)]
    assert here.post(SESSIONS, json={"title": "x" * 201}).status_code == 422


def test_messages_are_paged_oldest_first_with_all_their_fields(
    ana: Ana, replicas: Replicas
) -> None:
    here, there = ana
    replicas.model.queue(text("one"), text("two"))
    told = here.post("/v1/agent/completions", json=_said("first")).json()
    there.post(CHAT, json=_said("second", session_id=told["session_id"]))
    place = f"{SESSIONS}/{told['session_id']}/messages"
    rows = _pages(ana, place, "messages", "after", limit=1)
    assert [each["content"] for each in rows] == ["first", "one", "second", "two"]
    assert rows == here.get(place).json()["messages"]
    assert [each["run_id"] for each in rows] == [told["run_id"], told["run_id"], None, None]
    assert {(each["partial"], len(each["citations"])) for each in rows} == {(False, 0)}
    times = [datetime.fromisoformat(each["created_at"]) for each in rows]
    assert times == sorted(times)
    for bad in ({"limit": "201"}, {"limit": "0"}, {"after": "msg_nobodys"}):
        assert here.get(place, params=bad).status_code == 422


def test_a_rename_is_seen_at_once_and_null_or_blank_clears(ana: Ana) -> None:
    here, there = ana
    made = there.post(SESSIONS, json={"title": "Tea"}).json()["session_id"]
    for title, kept in (("Coffee", "Coffee"), (None, None), ("Milk", "Milk"), ("  ", None)):
        told = here.patch(f"{SESSIONS}/{made}", json={"title": title})
        assert told.json() == {"session_id": made, "kind": "chat", "title": kept}
        assert there.get(SESSIONS).json()["sessions"][0]["title"] == kept
    assert here.patch(f"{SESSIONS}/{made}", json={}).status_code == 422
    agents = there.post("/v1/agent/sessions").json()["session_id"]
    told = here.patch(f"{SESSIONS}/{agents}", json={"title": "Run"})
    assert told.json()["kind"] == "agent"
    assert here.patch(f"{SESSIONS}/ses_nobodys", json={"title": "x"}).status_code == 404


def test_a_deletion_counts_what_went_and_leaves_the_users_memories(ana: Ana) -> None:
    here, there = ana
    session = here.post(CHAT, json=_said("hello")).json()["session_id"]
    _stored(here, "only in this session", scope="session", session_id=session)
    _stored(here, "of the user", session_id=session)
    gone = there.delete(f"{SESSIONS}/{session}")
    assert gone.json() == {
        "session_id": session, "sessions": 1, "messages": 2, "checkpoints": 0,
        "memories": 1, "index_entries": 3,
    }  # fmt: skip
    assert here.delete(f"{SESSIONS}/{session}").status_code == 404
    assert _contents(there, session_id=session) == ["of the user"]


def test_memories_are_listed_by_what_was_asked_for(ana: Ana, person: Person) -> None:
    here, there = ana
    editor = person("ed", role="editor")
    _stored(here, "Ana lives in Rome", valid_from="2026-01-01")
    _stored(there, "Ana likes tea", memory_type="preference")
    _stored(here, "in this session", scope="session", session_id="s1")
    _stored(editor, "Apollo flies", scope="project", project_id="apollo")
    assert len(_contents(there)) == 2
    assert _contents(there, type="preference") == ["Ana likes tea"]
    assert _contents(there, scope="session", session_id="s1") == ["in this session"]
    assert _contents(there, scope="project", project_id="apollo") == ["Apollo flies"]
    assert _contents(there, as_of="2026-06-01") == ["Ana lives in Rome"]
    everywhere = {"session_id": "s1", "project_id": "apollo"}
    whole = _pages(ana, MEMORIES, "memories", "cursor", limit=1, **everywhere)
    assert len(whole) == 4
    own = {each["content"]: each["provenance"] is not None for each in whole}
    assert own.pop("Apollo flies") is False
    assert set(own.values()) == {True}
    assert here.get(MEMORIES, params={"limit": "101"}).status_code == 422


def test_a_memory_and_its_history_are_told(ana: Ana, person: Person) -> None:
    here, there = ana
    rome = _stored(here, "Ana lives in Rome", valid_from="2026-01-01")
    bonn = _stored(there, "Ana lives in Bonn", replaces=rome["memory_id"])
    assert there.get(f"{MEMORIES}/{bonn['memory_id']}").json() == bonn
    chain = here.get(f"{MEMORIES}/{rome['memory_id']}/history").json()["memories"]
    assert [each["memory_id"] for each in chain] == [rome["memory_id"], bonn["memory_id"]]
    assert chain[0]["superseded_by"] == bonn["memory_id"]
    bo = person("bo", at=1)
    for end in ("", "/history"):
        foreign = bo.get(f"{MEMORIES}/{rome['memory_id']}{end}")
        assert foreign.status_code == bo.get(f"{MEMORIES}/{NOBODYS}{end}").status_code == 404


def test_a_memory_is_stored_and_deleted_by_whom_its_scope_allows(person: Person) -> None:
    roles = ("reader", "editor", "admin")
    writes = {"user": 0, "session": 0, "project": 1, "tenant": 2}
    where = {"session_id": "s1", "project_id": "apollo"}
    for level, role in enumerate(roles):
        here, there = person("ana", role=role), person("ana", at=1, role=role)
        admin = person("ana", role="admin")
        for scope, needed in writes.items():
            body = {"content": f"{role} {scope}", "scope": scope, "trust": "owner", **where}
            answer = here.post(MEMORIES, json=body)
            assert answer.status_code == (201 if level >= needed else 403), (role, scope)
            if level >= needed:
                assert answer.json()["trust"] == ("owner" if role == "admin" else "model")
            known = _stored(admin, f"{role} {scope} for all", scope=scope, **where)
            place = f"{MEMORIES}/{known['memory_id']}"
            gone = there.delete(place, params=where).status_code
            assert gone == (204 if level >= needed else 403), (role, scope)
            left = here.get(place, params=where).status_code
            assert left == (404 if level >= needed else 200), (role, scope)
    assert person("bo").delete(f"{MEMORIES}/{NOBODYS}").status_code == 404


def test_retention_is_set_at_the_write(ana: Ana) -> None:
    kept = _stored(ana[0], "in this session", scope="session", session_id="s1")
    ends, made = (datetime.fromisoformat(kept[name]) for name in ("expires_at", "created_at"))
    assert ends - made == timedelta(days=SESSION_DAYS)


def test_a_search_explains_and_holds_its_bounds(ana: Ana) -> None:
    here, there = ana
    rome = _stored(here, "Ana lives in Rome", valid_from="2026-01-01", trust="model")
    _stored(there, "Ana lives in Bonn", replaces=rome["memory_id"], valid_from="2026-03-01")

    def found(**more: Any) -> list[dict[str, Any]]:
        body = {"query": "Where does Ana live?", **more}
        rows: list[dict[str, Any]] = there.post("/v1/memory/search", json=body).json()["memories"]
        return rows

    assert [each["content"] for each in found()] == ["Ana lives in Bonn"]
    assert [each["content"] for each in found(as_of="2026-02-01")] == ["Ana lives in Rome"]
    (explained,) = found(explain=True)
    assert set(explained["factors"]) == {"recency", "importance", "entity", "type"}
    assert 0 < explained["relevance"] <= 1
    assert found()[0]["factors"] is None
    assert found(min_trust="model") == []
    assert found(max_tokens=1) == []
    assert len(found(max_tokens=None)) == 1


def test_a_turn_gets_its_context(ana: Ana, replicas: Replicas) -> None:
    here, there = ana
    session = here.post(CHAT, json=_said("My cat is called Mia")).json()["session_id"]
    _stored(here, "Ana has a cat named Mia")
    asked = {"question": "What is it called?", "session_id": session}
    replicas.model.queue(structured({"query": "What is my cat called?", "wanted_types": []}))
    told = there.post("/v1/memory/context", json=asked).json()
    assert [each["content"] for each in told["messages"]] == ["My cat is called Mia", "ok"]
    assert [each["content"] for each in told["recalled"]] == ["Ana has a cat named Mia"]
    assert "Mia" in told["block"]


def test_facts_are_extracted_from_a_given_exchange(ana: Ana, replicas: Replicas) -> None:
    fact = {
        "content": "Ana lives in Oslo", "memory_type": "fact", "scope": "user",
        "importance": 0.8, "entities": [], "replaces": "",
    }  # fmt: skip
    replicas.model.queue(structured({"facts": [fact]}))
    said = [{"role": "user", "content": "I live in Oslo"}]
    body = {"session_id": "s1", "messages": said}
    (kept,) = ana[0].post("/v1/memory/extract", json=body).json()["memories"]
    assert (kept["content"], kept["trust"]) == ("Ana lives in Oslo", "model")
    assert _contents(ana[1]) == ["Ana lives in Oslo"]


def test_erasing_a_session_or_a_user_reaches_all_of_it(ana: Ana, person: Person) -> None:
    here, there = ana
    session = here.post(CHAT, json=_said("hello")).json()["session_id"]
    _stored(here, "in this session", scope="session", session_id=session)
    told = there.delete(f"/v1/memory/sessions/{session}").json()
    assert (told["sessions"], told["messages"], told["entries"]) == (1, 2, 1)
    assert told["receipt"]
    assert here.delete(f"/v1/memory/sessions/{session}").status_code == 404
    here.post(CHAT, json=_said("again"))
    _stored(there, "of the user")
    _stored(person("bo"), "of another")
    assert here.delete("/v1/memory/users/ana").status_code == 403
    admin = person("root", at=1, role="admin")
    told = admin.delete("/v1/memory/users/ana").json()
    assert (told["sessions"], told["messages"], told["entries"]) == (1, 2, 1)
    assert told["receipt"]
    assert (_contents(here), _contents(person("bo", at=1))) == ([], ["of another"])
    assert here.get(SESSIONS).json()["sessions"] == []


def test_usage_export_and_import_are_an_admins(ana: Ana, person: Person) -> None:
    here, there = ana
    admins = person("root", role="admin"), person("root", at=1, role="admin")
    _stored(here, "Ana likes tea")
    here.post("/v1/memory/search", json={"query": "tea"})
    assert admins[1].get("/v1/memory/usage").json()["entries"] == 1
    usage = admins[0].get("/v1/memory/usage").json()
    assert usage == admins[1].get("/v1/memory/usage").json()
    assert (usage["searches"], usage["served_entries"]) == (1, 1)
    exported = admins[1].post("/v1/memory/export", json={})
    head, line = exported.content.splitlines()
    assert (json.loads(head)["count"], json.loads(line)["text"]) == (1, "Ana likes tea")
    admins[0].delete("/v1/memory/users/ana")
    done = admins[0].post("/v1/memory/import", content=exported.content)
    assert done.json() == {
        "imported": 1, "skipped_duplicates": 0, "dropped_links": 0, "sessions": 0, "messages": 0,
    }  # fmt: skip
    assert _contents(there) == ["Ana likes tea"]
    for method, place in (("GET", "usage"), ("POST", "export"), ("POST", "import")):
        body = {"json": {}} if place == "export" else {}
        assert there.request(method, f"/v1/memory/{place}", **body).status_code == 403


def test_health_readiness_and_metrics_are_open_and_name_nobody(
    ana: Ana, replicas: Replicas
) -> None:
    _stored(ana[0], "Ana likes tea")
    tenant = dict(ana[0].params)["tenant"]
    for service in replicas.services:
        with service.client() as nobody:
            assert nobody.get("/healthz").json() == {"status": "ok"}
            assert nobody.get("/readyz").json() == {"status": "ok"}
            figures = nobody.get("/metrics").text
            assert 'muniment_store_size{kind="' in figures
            assert tenant not in figures
