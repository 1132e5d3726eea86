"""What a store leaves out because it is out of reach is never missed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment import (
    AsyncSQLiteStore,
    InMemoryStore,
    Memory,
    MemoryPolicy,
    MemoryRecall,
    MemoryScope,
    MemoryType,
)
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.ports import Candidate
from tests.doubles.turn import NOW, OWNER, clock

TEXTS = st.sampled_from(
    ("tea", "tea at noon", "a kite in the garden", "noon in Oslo", "tea  AT noon")
)
"""Few, so that many say the same."""

AGES = st.integers(0, 2_000)
ENTITIES = st.sets(st.sampled_from(("ent-1", "ent-2", "ent-3"))).map(sorted).map(tuple)
KINDS = st.sampled_from((MemoryType.FACT, MemoryType.DECISION))
KNOWN = st.lists(st.tuples(TEXTS, AGES, st.floats(0, 1), ENTITIES, KINDS), max_size=25)
SAID = st.lists(st.tuples(TEXTS, AGES), max_size=25)
Known = tuple[float, int, tuple[str, ...], MemoryType]
"""Importance, age in hours, entities and type."""

POLICIES = st.builds(
    MemoryPolicy,
    recall_messages=st.just("user"),
    recall_top_k=st.integers(1, 4),
    recent_max_tokens=st.sampled_from((300, 4_000)),
    recency_half_life_hours=st.sampled_from((0.001, 168.0, 10_000_000.0)),
    block_overflow=st.sampled_from(("stop", "skip")),
)


def asked_for_every_candidate(store: InMemoryStore) -> InMemoryStore:
    candidates = store.memories.candidates

    async def every(*place: Any, reach: object = None, **asked: Any) -> tuple[Candidate, ...]:
        return await candidates(*place, **asked)

    store.memories.candidates = every
    return store


async def _filled(known: list[Any], said: list[Any]) -> InMemoryStore:
    store = InMemoryStore(clock=clock)
    for place, (text, hours, importance, entities, kind) in enumerate(known):
        at = NOW - timedelta(hours=hours)
        kept = Memory(f"m{place}", MemoryScope.USER, kind, OWNER, text, entity_ids=entities)
        await store.memories.save(
            replace(kept, created_at=at, updated_at=at, importance=importance)
        )
    asked = ConversationIdentity(OWNER.tenant_id, "token", "before", OWNER.user_id or "")
    messages = [
        ConversationMessage(f"t{place}", "user", text, NOW - timedelta(hours=hours))
        for place, (text, hours) in enumerate(said)
    ]
    await store.conversations.append_messages(asked, messages)
    return store


@given(KNOWN, SAID, TEXTS, POLICIES, ENTITIES, st.sets(KINDS))
@settings(max_examples=60, deadline=None)
async def test_recall_is_as_if_every_candidate_had_been_read(
    known: list[Any],
    said: list[Any],
    asked: str,
    policy: MemoryPolicy,
    anchor: tuple[str, ...],
    wanted: set[MemoryType],
) -> None:
    stores = await _filled(known, said), asked_for_every_candidate(await _filled(known, said))
    near, every = [
        await MemoryRecall(policy=policy, memories=store.memories, clock=clock).recall(
            OWNER, asked, anchor_entity_ids=anchor, wanted_types=tuple(wanted)
        )
        for store in stores
    ]
    assert near == every


@pytest.mark.parametrize(
    ("others", "one", "anchor", "wanted"),
    [
        ((1.0, 0, (), MemoryType.FACT), (0.6, 0, ("ent-1",), MemoryType.FACT), ("ent-1",), ()),
        ((1.0, 0, (), MemoryType.FACT), (0.6, 0, (), MemoryType.DECISION), (), ("decision",)),
        ((0.5, 9_000, (), MemoryType.FACT), (0.0, 0, (), MemoryType.FACT), (), ()),
        ((0.0, 300, (), MemoryType.FACT), (1.0, 9_000, (), MemoryType.FACT), (), ()),
    ],
    ids=["entity", "type", "recency", "importance"],
)
async def test_what_one_factor_alone_lifts_is_within_reach(
    others: Known, one: Known, anchor: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    store = await _filled([("tea", *others[1::-1], *others[2:])] * 30, [])
    importance, hours, entities, kind = one
    at = NOW - timedelta(hours=hours)
    kept = Memory("one", MemoryScope.USER, kind, OWNER, "tea", entity_ids=entities)
    await store.memories.save(replace(kept, created_at=at, updated_at=at, importance=importance))
    recall = MemoryRecall(policy=MemoryPolicy(recall_top_k=1), memories=store.memories, clock=clock)
    (found,) = await recall.recall(
        OWNER, "tea", anchor_entity_ids=anchor, wanted_types=[MemoryType(kind) for kind in wanted]
    )
    assert found.memory_id == "one"


async def test_a_store_reads_few_more_rows_than_are_answered(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "memory.db", clock=clock) as store:
        for number in range(60):
            at = NOW - timedelta(hours=number)
            kept = Memory(f"m{number}", MemoryScope.USER, MemoryType.FACT, OWNER, f"tea {number}")
            await store.memories.save(
                replace(kept, created_at=at, updated_at=at, importance=number / 60)
            )
        read: list[int] = []
        candidates = store.memories.candidates

        async def counted(*place: Any, **asked: Any) -> tuple[Candidate, ...]:
            found = await candidates(*place, **asked)
            read.append(len(found))
            return found

        store.memories.candidates = counted
        policy = MemoryPolicy(recall_top_k=8)
        found = await MemoryRecall(policy=policy, memories=store.memories, clock=clock).recall(
            OWNER, "tea"
        )
        assert len(found) == 8
        assert read == [11]


async def test_what_says_the_same_does_not_crowd_out_what_was_out_of_reach() -> None:
    policy = MemoryPolicy(recall_messages="user", recall_top_k=2)
    said = [("tea", 1)] * 30 + [("a kite flies above the garden where we had tea at noon", 900)]
    stores = await _filled([], said), asked_for_every_candidate(await _filled([], said))
    near, every = [
        await MemoryRecall(policy=policy, memories=store.memories, clock=clock).recall(OWNER, "tea")
        for store in stores
    ]
    assert len(every) == 2
    assert near == every
