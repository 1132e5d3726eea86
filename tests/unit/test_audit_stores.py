"""What the stores record in an audit log, and what they refuse without a sound one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope
from muniment.domain.scope import MemoryScope
from muniment.errors import AuditError
from muniment.governance.audit import BEGINNING, AuditLog, verify_audit_log
from muniment.governance.audit_record import AuditEntry
from muniment.governance.audit_verification import find_receipt
from muniment.governance.events import Records
from muniment.stores.in_memory import InMemoryStore
from muniment.stores.sqlite import AsyncSQLiteStore

Store = InMemoryStore | AsyncSQLiteStore
NOON, DAY = datetime(2026, 3, 10, 12, tzinfo=UTC), timedelta(days=1)
ANA = MemoryOwner(
    "acme", project_id="p", user_id="ana", principal_id="ana", session_id="s1", run_id="r"
)
BO, CY = MemoryOwner("acme", user_id="bo"), MemoryOwner("other", user_id="ana")
TALK = ConversationIdentity("acme", "ana", "s1", "ana")
MINE = "tenant=acme/subject=ana"
SESSION = f"{MINE}/session=s1"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture(params=["in_memory", "sqlite"])
async def store(request: Any, tmp_path: Path, log: Path) -> AsyncIterator[Store]:
    made: Store = (
        InMemoryStore(clock=lambda: NOON, audit=log)
        if request.param == "in_memory"
        else AsyncSQLiteStore(tmp_path / "memory.db", clock=lambda: NOON, audit=AuditLog(log))
    )
    async with made:
        yield made


def _content(log: Path) -> bytes:
    return log.read_bytes()


def _become(log: Path, content: bytes) -> None:
    log.write_bytes(content)


def _records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_bytes().splitlines()]


def _said(log: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Event, realm and data of each record, without its id."""
    records = _records(log)
    assert len({record["data"].pop("record_id") for record in records}) == len(records)
    return [(record["event"], record["realm"], record["data"]) for record in records]


def _memory(
    name: str, scope: MemoryScope = MemoryScope.USER, owner: MemoryOwner = ANA, **fields: Any
) -> Memory:
    kind = fields.pop("memory_type", MemoryType.FACT)
    fields.setdefault("created_at", NOON)
    return Memory(name, scope, kind, owner, f"quagga {name}", **fields)


def _message(name: str) -> ConversationMessage:
    return ConversationMessage(name, "user", f"quagga {name}", NOON)


async def test_every_memory_is_recorded_by_its_realm_id_and_scope(store: Store, log: Path) -> None:
    for scope in MemoryScope:
        await store.memories.save(_memory(f"of {scope}", scope))
    await store.memories.save(_memory("of user"))
    assert _said(log) == [
        ("memory.saved", SESSION, {"memory_id": "of run", "scope": "run", "run_id": "r"}),
        ("memory.saved", SESSION, {"memory_id": "of session", "scope": "session"}),
        ("memory.saved", MINE, {"memory_id": "of user", "scope": "user"}),
        ("memory.saved", MINE, {"memory_id": "of project", "scope": "project", "project_id": "p"}),
        ("memory.saved", MINE, {"memory_id": "of tenant", "scope": "tenant"}),
        ("memory.saved", MINE, {"memory_id": "of global", "scope": "global"}),
        ("memory.updated", MINE, {"memory_id": "of user", "scope": "user"}),
    ]


async def test_a_succession_is_recorded_on_both_sides_and_so_is_its_end(
    store: Store, log: Path
) -> None:
    await store.memories.store_fact(_memory("old"))
    await store.memories.store_fact(_memory("new"), supersedes="old")
    await store.memories.store_fact(_memory("new again"))
    assert await store.memories.delete(ANA, "new")
    said = [(event, data["memory_id"], data.get("superseded_by")) for event, _, data in _said(log)]
    assert said[:3] == [
        ("memory.saved", "old", None),
        ("memory.superseded", "old", "new"),
        ("memory.saved", "new", None),
    ]
    assert said[-2:] == [("memory.deleted", "new", None), ("memory.reopened", "old", None)]


async def test_a_fact_that_is_known_is_recorded_once(store: Store, log: Path) -> None:
    await store.memories.store_fact(_memory("a", fields := MemoryScope.USER))
    twin = Memory("b", fields, MemoryType.FACT, ANA, "quagga a", created_at=NOON)
    assert not (await store.memories.store_fact(twin)).created
    assert [event for event, _, _ in _said(log)] == ["memory.saved"]


async def test_entries_by_realm_are_recorded_as_memories_are(store: Store, log: Path) -> None:
    alice = Scope("acme", subject="ana", session="s1")
    old = await store.entries.add(alice, "quagga one")
    new = await store.entries.supersede(alice, old.id, "quagga two")
    assert await store.entries.forget(alice, [new.id]) == 1
    assert [(event, realm, data["memory_id"]) for event, realm, data in _said(log)] == [
        ("memory.saved", SESSION, old.id),
        ("memory.superseded", SESSION, old.id),
        ("memory.saved", SESSION, new.id),
        ("memory.deleted", SESSION, new.id),
        ("memory.reopened", SESSION, old.id),
    ]


async def test_conversations_are_recorded_by_session_and_count(store: Store, log: Path) -> None:
    talk = store.conversations
    await talk.append_messages(TALK, [_message("m1"), _message("m2")])
    await talk.append_messages(TALK, [_message("m2")])
    await talk.create(TALK, title="quagga")
    await talk.rename_conversation(TALK, title="quagga")
    await talk.set_generated_title(TALK, title="quagga")
    await store.memories.save(
        _memory("summary", MemoryScope.SESSION, memory_type=MemoryType.SUMMARY)
    )
    await talk.clear_messages(TALK)
    await store.memories.save(_memory("kept for the session", MemoryScope.SESSION))
    assert await talk.delete(TALK)
    assert _said(log) == [
        ("conversation.created", SESSION, {"kind": "chat"}),
        ("conversation.appended", SESSION, {"messages": 2}),
        ("conversation.renamed", SESSION, {"by_hand": True}),
        ("memory.saved", SESSION, {"memory_id": "summary", "scope": "session"}),
        ("memory.deleted", SESSION, {"memory_id": "summary", "scope": "session"}),
        ("conversation.cleared", SESSION, {"messages": 2}),
        ("memory.saved", SESSION, {"memory_id": "kept for the session", "scope": "session"}),
        ("conversation.deleted", SESSION, {"messages": 0, "memories": 1}),
    ]


async def test_what_is_swept_is_recorded_by_its_ids(store: Store, log: Path) -> None:
    await store.memories.save(_memory("gone", created_at=NOON - DAY, expires_at=NOON))
    await store.memories.save(_memory("stays"))
    assert await store.sweep_expired(Scope("acme")) == 1
    swept = ("memories.swept", "tenant=acme", {"count": 1, "memory_ids": ["gone"]})
    assert _said(log)[2:] == [swept]


async def test_records_hold_no_text_no_title_and_no_metadata(store: Store, log: Path) -> None:
    await store.memories.save(_memory("a", metadata={"animal": "quagga"}, source="quagga"))
    await store.memories.store_fact(_memory("b"), supersedes="a")
    await store.conversations.append_messages(TALK, [_message("m1")])
    await store.conversations.rename_conversation(TALK, title="quagga")
    await store.working.put(ANA, {"animal": "quagga"}, ttl_seconds=60)
    await store.erase(Scope("acme"))
    assert b"quagga" not in _content(log)
    assert len(_records(log)) == 7


async def test_working_state_is_scratch_and_not_recorded(store: Store, log: Path) -> None:
    await store.working.put(ANA, {"step": 1}, ttl_seconds=60)
    await store.working.delete(ANA)
    assert _records(log) == []


async def test_the_wrong_owner_changes_and_records_nothing(store: Store, log: Path) -> None:
    await store.memories.save(_memory("a"))
    before = _records(log)
    for wrong in (BO, CY):
        assert not await store.memories.delete(wrong, "a")
        assert not await store.memories.delete(wrong, "never was")
    assert await store.entries.forget(Scope("other"), ["a"]) == 0
    assert _records(log) == before


async def test_a_change_that_fails_is_not_recorded(store: Store, log: Path) -> None:
    await store.conversations.append_messages(TALK, [_message("m1")])
    before = _records(log)
    other = ConversationMessage("m1", "user", "something else", NOON)
    with pytest.raises(ValueError, match="message_id"):
        await store.conversations.append_messages(TALK, [_message("m2"), other])
    assert _records(log) == before


async def _half(store: InMemoryStore) -> None:
    async with store._tables.change() as change:
        change.record("test.half", None)
        raise ValueError("half")


async def test_in_process_a_change_that_fails_half_way_is_not_recorded(log: Path) -> None:
    async with InMemoryStore(clock=lambda: NOON, audit=log) as store:
        with pytest.raises(ValueError, match="half"):
            await _half(store)
        await store.memories.save(_memory("a"))
    assert [event for event, _, _ in _said(log)] == ["memory.saved"]


async def test_a_receipt_is_held_against_the_log(store: Store, log: Path) -> None:
    await store.memories.save(_memory("a"))
    await store.memories.save(_memory("b"))
    receipt = (await store.erase(Scope("acme", subject="ana"))).receipt or ""
    assert verify_audit_log(log, receipt=receipt).ok
    checked = await store.verify_audit(receipt=receipt)
    assert checked is not None
    assert (checked.ok, checked.records) == (True, 3)
    found = find_receipt(log, receipt)
    assert found is not None
    assert (found.realm, found.data["entries"], found.time) == (
        MINE,
        2,
        "2026-03-10T12:00:00.000000+00:00",
    )


async def test_a_receipt_of_another_erasure_is_not_held(store: Store, log: Path) -> None:
    await store.memories.save(_memory("a"))
    receipt = (await store.erase(Scope("acme"))).receipt or ""
    head, record_id, digest = receipt.split(":")
    for forged in (f"{head}:{record_id}:{'0' * 64}", f"{head}:{'0' * 32}:{digest}"):
        assert verify_audit_log(log, receipt=forged).error == "no record holds the receipt"
        assert find_receipt(log, forged) is None
        checked = await store.verify_audit(receipt=forged)
        assert checked is not None
        assert not checked.ok
    with pytest.raises(ValueError, match="receipt"):
        verify_audit_log(log, receipt="muniment-erasure:quagga")
    with pytest.raises(ValueError, match="receipt"):
        await store.verify_audit(receipt=receipt[:-1])


async def test_a_receipt_is_not_held_by_a_damaged_log(store: Store, log: Path) -> None:
    await store.memories.save(_memory("a"))
    receipt = (await store.erase(Scope("acme"))).receipt or ""
    _become(log, _content(log).replace(b"memory.saved", b"memory.moved"))
    assert find_receipt(log, receipt) is None
    result = verify_audit_log(log, receipt=receipt)
    assert (result.ok, result.line) == (False, 1)


async def test_a_receipt_is_not_held_by_a_log_that_is_damaged_behind_it(
    store: Store, log: Path
) -> None:
    await store.memories.save(_memory("a"))
    receipt = (await store.erase(Scope("acme"))).receipt or ""
    await store.memories.save(_memory("b"))
    _become(log, _content(log)[:-3])
    assert find_receipt(log, receipt) is None


@pytest.mark.parametrize("length", [36, 256])
def test_any_number_of_ids_is_recorded_in_records_that_fit(length: int, log: Path) -> None:
    ids = [f"{number:06}".ljust(length, "\N{GRINNING FACE}") for number in range(3_000)]
    kept: list[AuditEntry] = []
    Records(kept.append, NOON).record_ids("memories.swept", RealmKey("é" * 256, "é" * 256), ids)
    with AuditLog(log).held() as held:
        held.append(kept, since=BEGINNING)
    said = [data for _, _, data in _said(log)]
    assert [name for data in said for name in data["memory_ids"]] == ids
    assert [data["count"] for data in said] == [len(data["memory_ids"]) for data in said]
    assert len(said) > 1
    assert verify_audit_log(log).ok


async def test_a_log_that_was_cut_off_is_found_by_the_store(store: Store, log: Path) -> None:
    for name in ("a", "b"):
        await store.memories.save(_memory(name))
    _become(log, _content(log).splitlines(keepends=True)[0])
    assert verify_audit_log(log).ok
    checked = await store.verify_audit()
    assert checked is not None
    assert checked.error == "records that were there are cut off"


async def test_with_a_damaged_log_only_what_removes_goes_on(store: Store, log: Path) -> None:
    for name in ("a", "b"):
        await store.memories.save(_memory(name))
    await store.conversations.append_messages(TALK, [_message("m1")])
    sound = _content(log)
    _become(log, sound[:-9])
    for write in (
        store.memories.save(_memory("c")),
        store.memories.store_fact(_memory("c")),
        store.entries.add(Scope("acme"), "c"),
        store.conversations.append_messages(TALK, [_message("m2")]),
        store.conversations.create(ConversationIdentity("acme", "ana", "s2", "ana")),
        store.conversations.rename_conversation(TALK, title="t"),
    ):
        with pytest.raises(AuditError, match="torn"):
            await write
    assert [m.message_id for m in await store.conversations.recent_messages(TALK, limit=9)] == [
        "m1"
    ]
    assert await store.memories.delete(ANA, "a")
    await store.working.put(ANA, {"step": 1}, ttl_seconds=60)
    assert (await store.erase(Scope("acme", subject="ana"))).entries == 1
    checked = await store.verify_audit()
    assert checked is not None
    assert not checked.ok
    _become(log, sound)
    await store.memories.save(_memory("d"))
    assert [event for event, _, _ in _said(log)][4:] == [
        "memory.deleted",
        "realm.erased",
        "memory.saved",
    ]


async def test_a_store_without_a_log_has_nothing_to_verify(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "memory.db") as sqlite, InMemoryStore() as in_memory:
        assert await sqlite.verify_audit() is None
        assert await in_memory.verify_audit() is None
