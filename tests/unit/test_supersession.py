"""Long successions: followed without recursion, and once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from muniment import Memory, MemoryOwner, Scope, SQLiteStore
from muniment.domain.memory import MemoryType
from muniment.domain.scope import MemoryScope
from muniment.stores.supersession import chronological, needs_predecessor, succession

NOW = datetime(2026, 3, 10, tzinfo=UTC)
STEP = timedelta(microseconds=1)
ANA = MemoryOwner("acme", user_id="ana")
LENGTH = 3_000


def _fact(number: int, begins: datetime, ends: datetime | None = None) -> Memory:
    return Memory(
        str(number),
        MemoryScope.USER,
        MemoryType.FACT,
        ANA,
        f"fact {number}",
        created_at=begins,
        updated_at=begins,
        valid_from=begins,
        invalid_at=ends,
        superseded_by=None if ends is None else str(number + 1),
    )


def _chain(last: datetime, step: timedelta = STEP) -> list[Memory]:
    begun = [last - step * (LENGTH - 1 - number) for number in range(LENGTH)]
    return [_fact(n, begun[n], begun[n + 1] if n + 1 < LENGTH else None) for n in range(LENGTH)]


def test_facts_of_one_instant_make_room_however_many_they_are() -> None:
    rows = _chain(NOW)
    before = {rows[n + 1].memory_id: rows[n] for n in range(LENGTH - 1)}
    new, changed = succession(
        _fact(LENGTH, NOW), rows[-1], lambda row: before.get(row.memory_id), NOW
    )
    assert (len(changed), new.valid_from) == (LENGTH, NOW)
    later: datetime | None = NOW
    for row in changed:
        assert row.invalid_at == later
        later = row.valid_from
        assert later is not None
        assert later < row.invalid_at


def test_no_more_is_asked_of_the_past_than_may_be_needed() -> None:
    rows = _chain(NOW, timedelta(seconds=1))
    assert not needs_predecessor(rows[-1], NOW + timedelta(days=1), 0)
    assert needs_predecessor(rows[-1], NOW, 0)
    assert needs_predecessor(rows[-1], NOW - timedelta(days=1), 0)
    assert not needs_predecessor(rows[-2], NOW, 1)


def test_facts_from_the_first_instant_there_is_replace_each_other() -> None:
    first = datetime.min.replace(tzinfo=UTC)
    new, changed = succession(_fact(2, first), _fact(1, first), lambda _: None, NOW)
    assert (new.valid_from, new.superseded_by) == (first, None)
    assert [(row.valid_from, row.invalid_at, row.superseded_by) for row in changed] == [
        (None, first, "2")
    ]


def test_a_long_history_is_put_in_order() -> None:
    rows = _chain(NOW)
    found = chronological("7", reversed(rows))
    assert [row.memory_id for row in found] == [row.memory_id for row in rows]


@pytest.mark.parametrize("same", [True, False])
def test_what_was_replaced_comes_before_what_replaced_it(same: bool) -> None:
    with SQLiteStore(clock=(lambda: NOW) if same else None) as store:
        entry = store.add(Scope("acme"), "fact 0")
        for number in range(1, 30):
            entry = store.supersede(Scope("acme"), entry.id, f"fact {number}")
        told = [each.text for each in store.history(Scope("acme"), entry.id)]
    assert told == [f"fact {number}" for number in range(30)]
