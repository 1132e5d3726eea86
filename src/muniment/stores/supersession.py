"""How facts follow each other: half-open intervals that touch and never overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeGuard

from muniment.domain.memory import Memory

_SMALLEST = timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)


def is_live(row: Memory, now: datetime) -> bool:
    """Neither replaced nor over nor expired; it may begin later than now."""
    ended = row.invalid_at is not None and row.invalid_at <= now
    return row.superseded_by is None and not ended and not row.is_expired_at(now)


def is_twin(row: Memory, fact: Memory, now: datetime) -> bool:
    """`row`, of the same content, already says what `fact` says.

    It is live, or it is the same late news: a fact of the past is closed from the start.
    """
    late = fact.valid_from is not None and row.valid_from == fact.valid_from
    return is_live(row, now) or (late and not row.is_expired_at(now))


def twin_of(fact: Memory, same: Iterable[Memory], now: datetime) -> Memory | None:
    """Which of these rows of the same content already says what `fact` says."""
    return next((row for row in same if is_twin(row, fact, now)), None)


def said_elsewhere(prior: Memory, same: Iterable[Memory], now: datetime) -> bool:
    """Another of these rows of `prior`'s content is live, so that `prior` need not be again."""
    return any(row.memory_id != prior.memory_id and is_live(row, now) for row in same)


def gives_way(prior: Memory | None, known: Memory, now: datetime) -> TypeGuard[Memory]:
    """`prior`, which a fact is to replace, is closed though that fact is known already."""
    if prior is None or prior == known:
        return False
    return is_live(prior, now) and is_live(known, now)


def succession(
    new: Memory,
    prior: Memory,
    predecessor_of: Callable[[Memory], Memory | None],
    now: datetime,
) -> tuple[Memory, tuple[Memory, ...]]:
    """`new` put into the succession that ends in `prior`, and the rows that change for it.

    The first of those, if any, is the one that `new` closes. News older than `prior` go before
    it, closed where the next one begins, and `prior` stays.
    """
    begins = new.valid_from or now
    later: Memory | None = None
    earlier: Memory | None = prior
    while earlier is not None and earlier.valid_from is not None and begins < earlier.valid_from:
        later, earlier = earlier, predecessor_of(earlier)
    new = replace(new, valid_from=begins)
    if later is not None:
        new = replace(new, invalid_at=later.valid_from, superseded_by=later.memory_id)
    if earlier is None:
        return new, ()
    first = replace(earlier, superseded_by=new.memory_id, updated_at=max(earlier.updated_at, now))
    return new, _closed(first, begins, predecessor_of)


def replaced(
    old: Memory,
    new: Memory,
    predecessor_of: Callable[[Memory], Memory | None],
    now: datetime,
) -> tuple[Memory, tuple[Memory, ...]]:
    """`new` in the place of `old`, by the application's word, and the rows that change for it.

    What was over before is not made to last longer.
    """
    if old.invalid_at is None or old.invalid_at > (new.valid_from or now):
        return succession(new, old, predecessor_of, now)
    updated = max(old.updated_at, now)
    return new, (replace(old, superseded_by=new.memory_id, updated_at=updated),)


def closed_for_known(
    prior: Memory,
    known: Memory,
    predecessor_of: Callable[[Memory], Memory | None],
    now: datetime,
) -> tuple[Memory, ...]:
    """The rows that change where `prior` gives way to a fact that is live already."""
    first = replace(prior, superseded_by=known.memory_id, updated_at=max(prior.updated_at, now))
    return _closed(first, now, predecessor_of)


def _closed(
    row: Memory, instant: datetime, predecessor_of: Callable[[Memory], Memory | None]
) -> tuple[Memory, ...]:
    """`row` until `instant`; where it began only then, it and those before make room.

    Facts that replace each other at one instant so keep intervals that are neither empty nor
    overlapping, and the last one holds from the instant itself.
    """
    changed: list[Memory] = []
    while row.valid_from is not None and row.valid_from >= instant:
        if instant == _FIRST:
            return (*changed, replace(row, valid_from=None, invalid_at=instant))
        begun = instant - _SMALLEST
        changed.append(replace(row, valid_from=begun, invalid_at=instant))
        before = predecessor_of(row)
        if before is None or before.invalid_at is None or before.invalid_at <= begun:
            return tuple(changed)
        row, instant = before, begun
    return (*changed, replace(row, invalid_at=instant))


def needs_predecessor(row: Memory, begins: datetime, steps: int) -> bool:
    """Whether the rules above may ask what came before `row`, `steps` rows before the last one,
    where something begins (or closes the last one) at `begins`."""
    return row.valid_from is not None and begins - row.valid_from <= (steps + 1) * _SMALLEST


def handed_back(prior: Memory, deleted: Memory) -> Memory:
    """`prior` once the row that replaced it is gone: it lasts for as long as that one did."""
    if deleted.superseded_by is None:
        return replace(prior, invalid_at=None, superseded_by=None)
    return replace(prior, invalid_at=deleted.invalid_at, superseded_by=deleted.superseded_by)


def chronological(memory_id: str, beside: Iterable[Memory]) -> tuple[Memory, ...]:
    """The succession that `memory_id` is part of, oldest first, among one audience's rows."""
    rows = {memory.memory_id: memory for memory in beside}
    before: dict[str | None, list[str]] = {}
    for row in rows.values():
        before.setdefault(row.superseded_by, []).append(row.memory_id)
    linked: dict[str, Memory] = {}
    reached = [memory_id]
    while reached:
        name = reached.pop()
        if name not in linked and name in rows:
            linked[name] = rows[name]
            reached += [*before.get(name, ()), rows[name].superseded_by or ""]
    following = _following(linked)
    return tuple(sorted(linked.values(), key=lambda row: _place(row, following[row.memory_id])))


def _following(linked: Mapping[str, Memory]) -> dict[str, int]:
    """How many rows come after each one."""
    counted: dict[str, int] = {}
    for name in linked:
        passed: dict[str, None] = {}
        after: str | None = name
        while after is not None and after in linked and not (after in counted or after in passed):
            passed[after] = None
            after = linked[after].superseded_by
        count = counted.get(after, -1) if after is not None else -1
        for each in reversed(passed):
            count += 1
            counted[each] = count
    return counted


def _place(memory: Memory, following: int) -> tuple[datetime, datetime, int, str]:
    """By time; of one instant, what was replaced comes before what replaced it."""
    begins = memory.valid_from or min(memory.created_at, memory.invalid_at or memory.created_at)
    return begins, memory.created_at, -following, memory.memory_id
