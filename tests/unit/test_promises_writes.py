"""What may be written, and that a state is the caller's own copy on both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from muniment import MemoryOwner, MemoryPolicy, WorkingMemory
from muniment.extraction.dedup import Restatements
from muniment.extraction.scoping import clamp_importance
from tests.doubles.repositories import ForeignRepository, WordIndex
from tests.doubles.turn import NOW, fact

RUN = MemoryOwner("acme", user_id="ana", principal_id="key", session_id="s", run_id="r")


@pytest.mark.parametrize(
    ("proposed", "kept"),
    [
        (-0.5, 0.0),
        (0.4, 0.4),
        (7.0, 1.0),
        (float("inf"), 1.0),
        (float("-inf"), 0.0),
        (float("nan"), 0.0),
    ],
)
def test_importance_is_brought_within_zero_and_one(proposed: float, kept: float) -> None:
    assert clamp_importance(proposed) == kept


class CarelessStore:
    """A store that keeps and gives the very object that it got."""

    def __init__(self) -> None:
        self.state: Mapping[str, Any] | None = None

    async def get(self, owner: MemoryOwner) -> Mapping[str, Any] | None:
        return self.state

    async def put(self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int) -> None:
        self.state = state

    async def delete(self, owner: MemoryOwner) -> None:
        self.state = None


async def test_a_scratch_state_is_the_callers_own_copy() -> None:
    working = WorkingMemory(CarelessStore())
    await working.update(RUN, {"seen": ["a"]})
    (await working.scratch(RUN))["seen"].append("b")
    assert await working.scratch(RUN) == {"seen": ["a"]}


async def test_a_state_that_is_handed_in_stays_the_callers_own() -> None:
    working = WorkingMemory(CarelessStore())
    state = {"seen": ["a"]}
    await working.update(RUN, state)
    state["seen"].append("b")
    assert await working.scratch(RUN) == {"seen": ["a"]}


@pytest.mark.parametrize(
    ("proposed", "restates"),
    [
        ("Ana owns 2 cats.", True),
        ("Ana owns 3 cats", False),
        ("Ana no longer owns 2 cats; none of 2", False),
    ],
)
async def test_another_number_or_a_negation_is_news_however_similar(
    proposed: str, restates: bool
) -> None:
    repository = ForeignRepository(NOW)
    known = await repository.save(fact("known", "Ana owns 2 cats"))
    restatements = Restatements(
        MemoryPolicy(), repository, index=WordIndex(repository, similarity=0.99)
    )
    found = await restatements.of(fact("new", proposed), [1.0], now=NOW)
    assert found == (known if restates else None)
