"""What only a store on a file has to keep: restarts, models, many tenants, bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.errors import MemoryStoreError
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.stores.sqlite.statements import SQL
from muniment.testing.doubles import HashingEmbedder, ManualClock

ANA = MemoryOwner("acme", user_id="ana", principal_id="ana", session_id="s1", run_id="r1")
TALK = ConversationIdentity("acme", "ana", "s1", "ana")


def _memory(memory_id: str, content: str, owner: MemoryOwner = ANA) -> Memory:
    return Memory(memory_id, MemoryScope.USER, MemoryType.FACT, owner, content)


def _said(message_id: str, content: str) -> ConversationMessage:
    return ConversationMessage(message_id, "user", content, ManualClock()())  # type: ignore[arg-type]


async def _found(store: AsyncSQLiteStore, text: str, owner: MemoryOwner = ANA) -> list[str]:
    found = await store.memories.candidates(
        owner,
        text,
        scopes=tuple(MemoryScope),
        memory_types=tuple(MemoryType),
        messages="user",
    )
    return [candidate.memory.memory_id for candidate in found]


def _bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_an_opening_is_what_the_two_faces_answer() -> None:
    async with AsyncSQLiteStore() as store:
        for number in range(3):
            await store.conversations.append_messages(TALK, [_said(f"q{number}", "zebra")])
            await store.memories.save(_memory(f"m{number}", "the zebra sleeps"))
        query = MemoryQuery(ANA, scopes=(MemoryScope.USER,), limit=2)
        messages, memories = await store.opening(TALK, query, limit=2)
        assert messages == await store.conversations.recent_messages(TALK, limit=2)
        assert memories == await store.memories.search(query)
        assert (len(messages), len(memories)) == (2, 2)


@pytest.mark.parametrize(("text", "limit"), [("zebra", 1), (None, 0)])
async def test_an_opening_refuses_a_text_and_a_limit_out_of_range(
    text: str | None, limit: int
) -> None:
    async with AsyncSQLiteStore() as store:
        with pytest.raises(ValueError, match="limit" if text is None else "text"):
            await store.opening(TALK, MemoryQuery(ANA, text=text), limit=limit)


async def test_what_was_deleted_stays_gone_after_a_restart(tmp_path: Path) -> None:
    """Hazard 6."""
    path = tmp_path / "memory.db"
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_memory("m1", "the zebra sleeps"))
        await store.memories.save(_memory("m2", "the zebra wakes"))
        await store.conversations.append_messages(TALK, [_said("q1", "zebra zebra")])
        assert sorted(await _found(store, "zebra")) == ["m1", "m2", "q1"]
        assert await store.memories.delete(ANA, "m1")
        await store.conversations.clear_messages(TALK)
        assert await _found(store, "zebra") == ["m2"]
    async with AsyncSQLiteStore(path) as store:
        assert await _found(store, "zebra") == ["m2"]
        await store.erase(Scope("acme"))
        assert await _found(store, "zebra") == []
        await store.memories.save(_memory("m3", "another zebra"))
        assert await _found(store, "zebra") == ["m3"]


async def test_a_change_by_another_connection_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with AsyncSQLiteStore(path) as one, AsyncSQLiteStore(path) as other:
        await one.memories.save(_memory("m1", "the zebra sleeps"))
        assert await _found(other, "zebra") == ["m1"]
        await one.memories.save(_memory("m1", "the tiger sleeps"))
        await one.memories.save(_memory("m2", "a zebra"))
        assert await _found(other, "zebra") == ["m2"]
        assert await other.memories.delete(ANA, "m2")
        assert await _found(one, "zebra") == []


async def test_erased_text_is_in_no_byte_of_any_file(tmp_path: Path) -> None:
    """Hazard 7."""
    async with AsyncSQLiteStore(tmp_path / "memory.db") as store:
        await store.memories.save(_memory("m1", "token-5f3a9c lives here"))
        await store.conversations.append_messages(TALK, [_said("q1", "token-5f3a9c")])
        await store.working.put(ANA, {"key": "token-5f3a9c"}, ttl_seconds=60)
        result = await store.erase(Scope("acme", subject="ana"))
        assert (result.entries, result.messages, result.working_states) == (1, 1, 1)
        assert b"5f3a9c" not in _bytes_of(tmp_path)


async def test_erasing_one_agents_memories_makes_what_they_replaced_current(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "memory.db") as store:
        await store.memories.store_fact(_memory("m1", "lives in Rome"))
        for number, agent in enumerate(("a", "a", "b"), 2):
            fact = replace(_memory(f"m{number}", f"lives in city {number}"), agent_id=agent)
            await store.memories.store_fact(fact, supersedes=f"m{number - 1}")
        assert (await store.erase(Scope("acme", agent="b"))).entries == 1
        assert await _found(store, "lives") == ["m3"]
        assert (await store.erase(Scope("acme", agent="a"))).entries == 2
        assert await _found(store, "lives") == ["m1"]
        assert (await store.erase(Scope("acme", agent="a"))).entries == 0


async def test_embeddings_of_another_model_or_dimension_are_refused(tmp_path: Path) -> None:
    """Hazard 25."""
    path = tmp_path / "memory.db"
    async with AsyncSQLiteStore(path, embedder=HashingEmbedder(64)) as store:
        await store.memories.save(_memory("m1", "the zebra sleeps"))
        with pytest.raises(MemoryStoreError, match="reindex"):
            await store.memories.index_memory(_memory("m1", "the zebra sleeps"), [0.5] * 8)
        with pytest.raises(MemoryStoreError, match="reindex"):
            await store.memories.search_memories(MemoryQuery(ANA, text="zebra"), [0.5] * 8)
    with pytest.raises(MemoryStoreError, match="reindex"):
        await AsyncSQLiteStore(path, embedder=HashingEmbedder(64), embedder_name="other").open()
    async with AsyncSQLiteStore(path) as store:
        assert await _found(store, "zebra") == ["m1"]


async def test_reindexing_takes_a_file_to_another_model(tmp_path: Path) -> None:
    path, query = tmp_path / "memory.db", MemoryQuery(ANA, text="zebra")
    async with AsyncSQLiteStore(path, embedder=HashingEmbedder(64)) as store:
        for number in range(3):
            await store.memories.save(_memory(f"m{number}", f"zebra {number}"))
        await store.conversations.append_messages(TALK, [_said("q1", "a zebra")])
    new = HashingEmbedder(32)
    store = AsyncSQLiteStore(path, embedder=new, embedder_name="other")
    await store.open(reindexing=True)
    assert await store.reindex() == 4
    assert len(await store.memories.search_memories(query, await new("zebra"))) == 3
    await store.aclose()
    async with AsyncSQLiteStore(path, embedder=new, embedder_name="other") as store:
        assert len(await store.memories.search_memories(query, await new("zebra"))) == 3


async def test_an_interrupted_reindex_mixes_no_models_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, query = tmp_path / "memory.db", MemoryQuery(ANA, text="zebra")
    async with AsyncSQLiteStore(path, embedder=HashingEmbedder(64)) as store:
        for number in range(5):
            await store.memories.save(_memory(f"m{number}", f"zebra {number}"))
        await store.conversations.append_messages(TALK, [_said("q1", "a zebra")])
    monkeypatch.setattr("muniment.stores.sqlite.reindexing._BATCH", 2)

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    new = HashingEmbedder(64)
    store = AsyncSQLiteStore(path, embedder=new, embedder_name="other")
    await store.open(reindexing=True)
    with pytest.raises(KeyboardInterrupt):
        await store.reindex(progress=stop)
    await store.aclose()
    async with AsyncSQLiteStore(path, embedder=new, embedder_name="other") as store:
        found = await store.memories.search_memories(query, await new("zebra"))
        assert len(found) == 2, "only what the new model embedded"
        seen: list[int] = []
        assert await store.reindex(progress=seen.append) == 4
        assert seen == [2, 3, 4]
        assert len(await store.memories.search_memories(query, await new("zebra"))) == 5
        assert await store.reindex() == 6, "a finished one begins anew"


async def test_reindexing_a_realm_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    embedder = HashingEmbedder(64)
    async with AsyncSQLiteStore(tmp_path / "memory.db", embedder=embedder) as store:
        embedder.fail = True
        for owner in (ANA, MemoryOwner("acme-corp", user_id="ana")):
            await store.memories.save(_memory("m1", "the zebra sleeps", owner=owner))
        embedder.fail = False
        assert await store.reindex(Scope("acme-corp")) == 1
        query = MemoryQuery(ANA, text="zebra")
        assert await store.memories.search_memories(query, await embedder("zebra")) == ()


async def test_a_failing_embedder_fails_no_write_and_reindex_repairs(tmp_path: Path) -> None:
    embedder = HashingEmbedder(64)
    async with AsyncSQLiteStore(tmp_path / "memory.db", embedder=embedder) as store:
        embedder.fail = True
        await store.memories.save(_memory("m1", "the zebra sleeps"))
        await store.conversations.append_messages(TALK, [_said("q1", "a zebra")])
        assert sorted(await _found(store, "zebra")) == ["m1", "q1"]
        embedder.fail = False
        assert await store.reindex() == 2
        asked = await embedder("the zebra sleeps")
        (match,) = await store.memories.search_memories(MemoryQuery(ANA, text="zebra"), asked)
        assert match.score == pytest.approx(1.0)


async def test_saving_the_same_content_without_an_embedder_keeps_its_vector(tmp_path: Path) -> None:
    path, embedder = tmp_path / "memory.db", HashingEmbedder(64)
    async with AsyncSQLiteStore(path, embedder=embedder) as store:
        await store.memories.save(_memory("m1", "the zebra sleeps"))
    query = MemoryQuery(ANA, text="zebra")
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_memory("m1", "the zebra sleeps"))
        asked = await embedder("zebra")
        assert len(await store.memories.search_memories(query, asked)) == 1
        await store.memories.save(_memory("m1", "the zebra wakes"))
        assert len(await store.memories.search_memories(query, asked)) == 0


async def test_images_over_the_budget_are_dropped_and_read_again(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "memory.db", image_bytes=1) as store:
        owners = [MemoryOwner("acme", user_id=f"u{number}") for number in range(5)]
        for owner in owners:
            await store.memories.save(_memory("m1", "the zebra sleeps", owner))
        for owner in owners * 2:
            assert await _found(store, "zebra", owner) == ["m1"]


_HOT: dict[str, Sequence[object] | dict[str, object]] = {
    "audiences": ("[]",),
    "memory_changed": (1, 0),
    "message_changed": (1, 0),
    "memory_keys": (1,),
    "message_keys": (1,),
    "get_memory": ("m", "[]", 0),
    "same_content": (1, "d"),
    "predecessor": (1, "m"),
    "held_messages": (1, "[]"),
    "recent_messages": (1, 9, 1),
    "messages_from": (1, 0, 1),
    "message_seqs": ("t", "u", "s", "[]"),
    "hydrate_memories": dict.fromkeys(("seqs", "keys", "now", "at", "any_time", "trust"), 0),
    "hydrate_messages": dict.fromkeys(("seqs", "keys", "session", "said_until"), 0),
    "list_memories": dict.fromkeys(("keys", "now", "at", "any_time", "types", "trust", "limit"), 0),
    "list_conversations": dict.fromkeys(
        ("tenant", "user", "kind", "messages", "conversations", "activity", "id", "limit"), 0
    ),
}


@pytest.mark.parametrize("name", _HOT)
async def test_a_hot_statement_never_reads_a_whole_table(name: str, tmp_path: Path) -> None:
    """Hazard 28: the plan, since a time would depend on the machine."""
    path = tmp_path / "memory.db"
    await (store := AsyncSQLiteStore(path)).open()
    await store.aclose()
    connection = apsw.Connection(str(path))
    rows = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", _HOT[name]).fetchall()
    plan = [str(row[3]) for row in rows]
    connection.close()
    assert plan
    tables = ("audience", "memory", "message", "conversation", "m", "c")
    assert not [step for step in plan if step.startswith(tuple(f"SCAN {t}" for t in tables))]


async def test_a_tenant_among_many_reads_no_more_than_among_few(tmp_path: Path) -> None:
    """Hazard 28, in steps of SQLite's machine for one recall's statements."""

    async def steps(tenants: int) -> int:
        path = tmp_path / f"{tenants}.db"
        async with AsyncSQLiteStore(path, synchronous="NORMAL") as store:
            for number in range(tenants):
                owner = MemoryOwner(f"t{number}", user_id="ana")
                await store.memories.save(_memory("m1", "the zebra sleeps", owner))
        connection, counted = apsw.Connection(str(path)), 0

        def count() -> bool:
            nonlocal counted
            counted += 1
            return False

        connection.set_progress_handler(count, 1)
        key = '["[\\"user\\", \\"t3\\", \\"ana\\"]"]'
        (audience,) = connection.execute(SQL["audiences"], (key,)).fetchall()
        assert len(connection.execute(SQL["memory_changed"], (audience[0], -1)).fetchall()) == 1
        connection.close()
        return counted

    assert await steps(400) == await steps(10)
