"""Deleting memories: many with a few statements, and as if it were one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from muniment.domain.memory import Memory
from muniment.governance import events
from muniment.stores.memory_rows import digest
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.session import Row, Session
from muniment.stores.rows import memory_of, optional_micros
from muniment.stores.supersession import handed_back, is_live, said_elsewhere

_AT_ONCE = 1000  # their texts are in memory together


class Place(NamedTuple):
    """Where a row is, or was."""

    audience: int
    name: str
    """Its memory's id, or another that the rows of an audience are found by."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A row as it is, or would be after what was deleted before."""

    audience: int
    arrived: int
    fact: bool
    memory: Memory

    @classmethod
    def of(cls, row: Row) -> _Held:
        audience, arrived, fact = row[:3]
        return cls(audience, arrived, fact, memory_of(row[3:]))

    @property
    def place(self) -> Place:
        return Place(self.audience, self.memory.memory_id)

    @property
    def follower(self) -> Place:
        """The place of what superseded it."""
        return Place(self.audience, self.memory.superseded_by or "")

    @property
    def content(self) -> Place:
        """What those of its audience that say the same have in common."""
        return Place(self.audience, digest(self.memory))

    @property
    def lateness(self) -> tuple[bool, float, int]:
        """The latest of those that one row superseded is what was current before it."""
        ended = optional_micros(self.memory.invalid_at)
        return ended is not None, ended or 0, self.arrived


class _Rows:
    """Rows that are deleted, those that they replaced, and those that say the same as these."""

    def __init__(self, rows: Iterable[_Held]) -> None:
        self._held = {row.place: row for row in rows}
        self._before: dict[Place, set[Place]] = defaultdict(set)
        self._same: dict[Place, list[Place]] = defaultdict(list)
        for place, row in self._held.items():
            self._before[row.follower].add(place)
            self._same[row.content].append(place)
        self._changed: set[Place] = set()

    def delete(self, change: Change, place: Place) -> _Held | None:
        """Without this row, what it had replaced is current again, unless the same is live."""
        gone = self._held.pop(place, None)
        if gone is None:
            return None
        self._before[gone.follower].discard(place)
        change.record_memory(events.MEMORY_DELETED, gone.memory)
        before = [self._held[each] for each in self._before[place]]
        prior = max(before, key=lambda row: row.lateness, default=None)
        if prior is None or said_elsewhere(prior.memory, self._like(prior), change.now):
            return None
        reopened = handed_back(prior.memory, gone.memory)
        made = replace(prior, memory=reopened, fact=gone.fact and is_live(reopened, change.now))
        self._put(made)
        change.record_memory(events.MEMORY_REOPENED, reopened)
        return made

    def _like(self, row: _Held) -> list[Memory]:
        places = self._same[row.content]
        return [self._held[place].memory for place in places if place in self._held]

    def _put(self, row: _Held) -> None:
        self._before[self._held[row.place].follower].discard(row.place)
        self._before[row.follower].add(row.place)
        self._held[row.place] = row
        self._changed.add(row.place)

    def changed(self, among: AbstractSet[Place]) -> list[_Held]:
        """Those that took another place in their succession and are not of `among`."""
        return [self._held[place] for place in sorted(self._changed - among)]


class Removal:
    """Memories that go in one transaction: deleted at once, then taken from their successions."""

    def __init__(
        self, change: Change, places: AbstractSet[Place], versions: dict[int, int], rows: _Rows
    ) -> None:
        self._change, self._places, self._versions, self._rows = change, places, versions, rows

    @classmethod
    async def of(cls, change: Change, places: Iterable[Place]) -> Removal:
        """Delete these rows; what another transaction has deleted is not there any more."""
        db, asked = change.db, frozenset(places)
        audiences = {"audiences": sorted({place.audience for place in asked})}
        if len(audiences["audiences"]) > 1:
            await db.all("lock_places", audiences)  # in one order
        versions: dict[int, int] = dict(await db.all("count_removals", audiences))
        gone = await _found(db, "delete_memories", asked)
        before = await _found(db, "predecessors", {row.place for row in gone})
        closed = [row for row in (*gone, *before) if row.follower in asked]
        same = await _found(db, "same_contents", {row.content for row in closed})
        return cls(change, asked, versions, _Rows((*gone, *before, *same)))

    def delete(self, place: Place) -> tuple[Place, Place] | None:
        """Take one from its succession: what it had replaced, and what replaces that now."""
        made = self._rows.delete(self._change, place) if place in self._places else None
        return None if made is None else (made.place, made.follower)

    async def write(self) -> None:
        """Put what is left of the successions in its new places."""
        rows = self._rows.changed(self._places)
        if rows:
            await self._change.db.run("reopen_memories", self._reopened(rows))

    def _reopened(self, rows: Sequence[_Held]) -> dict[str, Any]:
        return {
            **_named(row.place for row in rows),
            "invalid_at": [optional_micros(row.memory.invalid_at) for row in rows],
            "superseded_by": [row.memory.superseded_by for row in rows],
            "fact_keys": [digest(row.memory) if row.fact else None for row in rows],
            "changed": [self._versions[row.audience] for row in rows],
        }


async def remove_memories(change: Change, places: Sequence[Place]) -> None:
    """Delete rows, one after the other; what each had replaced is current again, unless the
    same is live elsewhere."""
    for start in range(0, len(places), _AT_ONCE):
        part = places[start : start + _AT_ONCE]
        removal = await Removal.of(change, part)
        for place in part:
            removal.delete(place)
        await removal.write()


async def _found(db: Session, name: str, places: Iterable[Place]) -> list[_Held]:
    asked = _named(sorted(places))
    return [_Held.of(row) for row in await db.all(name, asked)] if asked["names"] else []


def _named(places: Iterable[Place]) -> dict[str, list[Any]]:
    listed = list(places)
    audiences, names = [place.audience for place in listed], [place.name for place in listed]
    return {"audiences": audiences, "names": names}
