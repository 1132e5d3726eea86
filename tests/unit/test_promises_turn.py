"""The bounds of a turn, at their edges."""

from __future__ import annotations

import asyncio

from muniment import MemoryPolicy
from muniment.context.condense import accepted_query
from muniment.context.guarded import TurnGuard
from tests.doubles.turn import hang

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
