"""What a store leaves out because it is out of reach is never missed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muniment import InMemoryStore, Memory, MemoryPolicy, MemoryRecall, MemoryScope, MemoryType
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.ports import Candidate
from tests.doubles.turn import NOW, OWNER, clock

TEXTS = st.sampled_from(
    ("tea", "tea at noon", "a kite in the garden", "noon in Oslo", "tea  AT noon")
)
"""Few, so that many say the same."""

AGES = st.integers(0, 2_000)
KNOWN = st.lists(st.tuples(TEXTS, AGES, st.floats(0, 1)), max_size=25)
SAID = st.lists(st.tuples(TEXTS, AGES), max_size=25)
POLICIES = st.builds(
    MemoryPolicy,
    recall_messages=st.just("user"),
    recall_top_k=st.integers(1, 4),
    recent_max_tokens=st.sampled_from((300, 4_000)),
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
    for place, (text, hours, importance) in enumerate(known):
        at = NOW - timedelta(hours=hours)
        kept = Memory(f"m{place}", MemoryScope.USER, MemoryType.FACT, OWNER, text)
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


@given(KNOWN, SAID, TEXTS, POLICIES)
@settings(max_examples=60, deadline=None)
async def test_recall_is_as_if_every_candidate_had_been_read(
    known: list[Any], said: list[Any], asked: str, policy: MemoryPolicy
) -> None:
    stores = await _filled(known, said), asked_for_every_candidate(await _filled(known, said))
    near, every = [
        await MemoryRecall(policy=policy, memories=store.memories, clock=clock).recall(OWNER, asked)
        for store in stores
    ]
    assert near == every


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
