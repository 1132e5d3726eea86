"""What a store promises even where another part of it errs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from muniment import (
    AsyncSQLiteStore,
    ConversationIdentity,
    ConversationMessage,
    InMemoryStore,
    Memory,
    MemoryOwner,
    MemoryQuery,
    MemoryScope,
    MemoryType,
    Trust,
)
from muniment.evidence.corpus import Corpus
from muniment.evidence.score import Scored

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ANA = MemoryOwner("acme", user_id="ana", principal_id="key", session_id="monday")
BOB = MemoryOwner("acme", user_id="bob", principal_id="key-2", session_id="monday")


def fact(content: str, owner: MemoryOwner = ANA, **changes: Any) -> Memory:
    values: dict[str, Any] = {"trust": Trust.MODEL, "created_at": NOW - 2 * HOUR, **changes}
    return Memory(
        f"id of {content}",
        MemoryScope.USER,
        MemoryType.FACT,
        owner,
        content,
        **values,
    )


def said(key: str, content: str, at: datetime = NOW - 2 * HOUR) -> ConversationMessage:
    return ConversationMessage(key, "assistant", content, at)  # type: ignore[arg-type]


def conversation(owner: MemoryOwner) -> ConversationIdentity:
    return ConversationIdentity("acme", owner.principal_id, "monday", owner.user_id or "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def sqlite(path: Path) -> AsyncIterator[Any]:
    async with AsyncSQLiteStore(path, clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture(params=["in_memory", "sqlite"])
async def store(request: pytest.FixtureRequest, sqlite: Any) -> Any:
    return sqlite if request.param == "sqlite" else InMemoryStore(clock=lambda: NOW)


async def recalled(store: Any, **asked: Any) -> list[Memory]:
    values: dict[str, Any] = {
        "scopes": (MemoryScope.USER,),
        "memory_types": (MemoryType.FACT,),
        "messages": "user",
        **asked,
    }
    return [each.memory for each in await store.memories.candidates(ANA, "tea", **values)]


def everything(corpora: Sequence[Corpus], *_: object, **__: object) -> list[Scored]:
    """A ranking that errs in the worst way: it names every row of the file as everybody's."""
    places = range(len(corpora))
    return [Scored(place, key, 1.0, {}) for place in places for key in range(1, 20)]


@pytest.mark.parametrize(
    ("wrong", "asked"),
    [
        (fact("tea of Bob", BOB), {}),
        (fact("tea as a guess", trust=Trust.UNTRUSTED), {"min_trust": Trust.MODEL}),
        (fact("tea of the past", invalid_at=NOW), {}),
        (fact("tea of the future", valid_from=NOW + HOUR), {}),
        (fact("tea that is gone", expires_at=NOW), {}),
        ((BOB, said("b1", "tea said by Bob")), {}),
        ((ANA, said("a2", "tea said later", NOW)), {"as_of": NOW - HOUR}),
    ],
)
async def test_what_a_lying_ranking_names_is_asked_again(
    sqlite: Any, monkeypatch: pytest.MonkeyPatch, wrong: Any, asked: dict[str, Any]
) -> None:
    await sqlite.memories.save(fact("tea of Ana"))
    await sqlite.conversations.append_messages(conversation(ANA), [said("a1", "tea said by Ana")])
    if isinstance(wrong, Memory):
        await sqlite.memories.save(wrong)
    else:
        await sqlite.conversations.append_messages(conversation(wrong[0]), [wrong[1]])
    monkeypatch.setattr("muniment.stores.asks.score", everything)
    contents = {memory.content for memory in await recalled(sqlite, **asked)}
    assert contents == {"tea of Ana", "tea said by Ana"}


async def test_a_listing_holds_the_callers_own_memories_alone(store: Any) -> None:
    for row in (fact("tea of Ana"), fact("tea of Bob", BOB)):
        await store.memories.save(row)
    elsewhere = replace(ANA, tenant_id="acme-corp")
    await store.memories.save(fact("tea of another Ana", elsewhere))
    found = await store.memories.search(MemoryQuery(ANA))
    assert [memory.content for memory in found] == ["tea of Ana"]


async def test_a_recalled_message_is_untrusted_whoever_spoke(store: Any) -> None:
    await store.conversations.append_messages(conversation(ANA), [said("a1", "tea said by Ana")])
    assert [memory.trust for memory in await recalled(store)] == [Trust.UNTRUSTED]
    assert await recalled(store, min_trust=Trust.MODEL) == []


async def test_the_file_itself_refuses_a_second_live_fact(sqlite: Any, path: Path) -> None:
    await sqlite.memories.store_fact(fact("Ana drinks tea"))
    await sqlite.memories.store_fact(fact("Ana drinks milk"))
    other = apsw.Connection(str(path))
    try:
        with pytest.raises(apsw.ConstraintError):
            other.execute("UPDATE memory SET fact_key = 'the same'")
    finally:
        other.close()


async def test_a_generated_title_leaves_a_title_by_hand_alone(store: Any) -> None:
    identity = conversation(ANA)
    await store.conversations.create(identity, title="By hand")
    assert not await store.conversations.set_generated_title(identity, title="Generated")
    assert await store.conversations.get_title(identity) == "By hand"


async def test_a_list_of_conversations_holds_the_users_own_alone(store: Any) -> None:
    await store.conversations.create(conversation(ANA), title="Of Ana")
    await store.conversations.create(conversation(BOB), title="Of Bob")
    page = await store.conversations.list_conversations(tenant_id="acme", user_id="ana")
    assert [line.title for line in page.conversations] == ["Of Ana"]
