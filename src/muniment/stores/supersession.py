"""How facts follow each other: half-open intervals that touch and never overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from muniment.domain.memory import Memory

_SMALLEST = timedelta(microseconds=1)


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


def placed(
    new: Memory,
    prior: Memory,
    predecessor_of: Callable[[Memory], Memory | None],
    now: datetime,
) -> tuple[Memory, Memory | None]:
    """`new` put into the succession that ends in `prior`, and the row that it closes, if any.

    News older than `prior` go before it, closed where the next one begins, and `prior` stays.
    """
    begins = new.valid_from or now
    later: Memory | None = None
    earlier: Memory | None = prior
    while earlier is not None and earlier.valid_from is not None and begins < earlier.valid_from:
        later, earlier = earlier, predecessor_of(earlier)
    new = replace(new, valid_from=begins)
    if later is not None:
        new = replace(new, invalid_at=later.valid_from, superseded_by=later.memory_id)
    return new, None if earlier is None else closed_by(earlier, new, begins, now)


def closed_by(prior: Memory, new: Memory, instant: datetime, now: datetime) -> Memory:
    """`prior`, no longer true from `instant` on, because of `new`."""
    begun = prior.valid_from
    if begun is not None and begun >= instant:
        # Both say that they begin now: the interval must not be empty, nor cover `instant`.
        begun = instant - _SMALLEST
    return replace(
        prior,
        valid_from=begun,
        invalid_at=instant,
        superseded_by=new.memory_id,
        updated_at=max(prior.updated_at, now),
    )


def handed_back(prior: Memory, deleted: Memory) -> Memory:
    """`prior` once the row that replaced it is gone: it lasts for as long as that one did."""
    if deleted.superseded_by is None:
        return replace(prior, invalid_at=None, superseded_by=None)
    return replace(prior, invalid_at=deleted.invalid_at, superseded_by=deleted.superseded_by)


def chronological(memory_id: str, beside: Iterable[Memory]) -> tuple[Memory, ...]:
    """The succession that `memory_id` is part of, oldest first, among one audience's rows."""
    rows = {memory.memory_id: memory for memory in beside}
    linked: dict[str, Memory] = {}
    reached = [memory_id]
    while reached:
        name = reached.pop()
        if name in linked or name not in rows:
            continue
        linked[name] = rows[name]
        reached += [row.memory_id for row in rows.values() if row.superseded_by == name]
        reached += [rows[name].superseded_by or ""]
    return tuple(sorted(linked.values(), key=_begins))


def _begins(memory: Memory) -> tuple[datetime, datetime, str]:
    return memory.valid_from or memory.created_at, memory.created_at, memory.memory_id
