"""The bounds of a turn, at their edges."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from muniment import (
    EntityAnchor,
    MemoryContextBuilder,
    MemoryMatch,
    MemoryPolicy,
    MemoryRecall,
    entity_weight,
)
from muniment.context.condense import accepted_query
from muniment.context.guarded import TurnGuard
from muniment.context.summary import after_frontier
from tests.doubles.turn import (
    NOW,
    OWNER,
    Index,
    Messages,
    Model,
    Repository,
    clock,
    exchanges,
    fact,
    hang,
    message,
)

LONGEST_SECONDS = 5.0


def test_a_rewrite_is_refused_from_the_first_character_too_many() -> None:
    question = "And there?"
    longest = "x" * (4 * len(question) + 200)
    assert accepted_query(question, longest) == longest
    assert accepted_query(question, longest + "x") == question


async def test_a_call_that_hangs_costs_its_own_time_and_not_the_turns() -> None:
    guard = TurnGuard(MemoryPolicy(call_timeout_seconds=0.01, turn_timeout_seconds=60))
    async with asyncio.timeout(LONGEST_SECONDS):
        assert await guard.run("ask", hang, "nothing") == "nothing"


async def test_the_last_call_ends_with_the_turn() -> None:
    guard = TurnGuard(MemoryPolicy(call_timeout_seconds=60, turn_timeout_seconds=0.01))
    async with asyncio.timeout(LONGEST_SECONDS):
        assert await guard.run("ask", hang, "nothing") == "nothing"


def test_the_last_covered_message_leaves_the_window_too() -> None:
    assert after_frontier(exchanges(2), "m3") == (exchanges(2)[3],)


async def test_one_call_of_a_summary_reads_a_bounded_part_of_a_long_history() -> None:
    roles = ("user", "assistant")
    history = [message(place, roles[(place + 1) % 2], "word " * 2000) for place in range(1, 25)]
    model = Model()
    await MemoryContextBuilder(
        policy=MemoryPolicy(recent_max_messages=24, summary_keep_messages=2),
        messages=Messages(history),
        memories=Repository(),
        model=model,
        clock=clock,
    ).build(OWNER, "And now?")
    assert model.users("summary")
    assert max(map(len, model.users("summary"))) < 4 * 5_000


def test_few_of_many_entities_count_for_little() -> None:
    memory = fact("m", "tea", entity_ids=("a", "b", "c", "d"))
    assert entity_weight(memory, EntityAnchor(("a",), 0.5)) == 0.125


async def test_an_index_cannot_bring_back_what_is_no_longer_true() -> None:
    over = fact("over", "tea", invalid_at=NOW - timedelta(days=1))
    recall = MemoryRecall(
        policy=MemoryPolicy(),
        memories=Repository(over, fact("current", "tea again")),
        index=Index(MemoryMatch("over", 0.9), MemoryMatch("current", 0.8)),
        clock=clock,
    )
    assert [each.memory_id for each in await recall.recall(OWNER, "tea")] == ["current"]
