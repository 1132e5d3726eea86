"""Publishing what an import has read: all of it or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey, realm_of
from muniment.domain.trust import Trust
from muniment.governance import events
from muniment.governance.events import Records
from muniment.stores.in_memory.tables import MemoryRow, Tables
from muniment.stores.transfer import ImportResult, Intake
from muniment.stores.transfer_lines import refused
from muniment.stores.transfer_reading import (
    ABOVE_SOURCES,
    IN_A_CIRCLE,
    USED_TWICE,
    Incoming,
)

_SMALLEST = timedelta(microseconds=1)


@dataclass(slots=True)
class _Read:
    """An entry on its way: `twin` is the stored row that says the same already."""

    entry: Incoming
    digest: str
    vector: bytes | None
    memory: Memory
    twin: MemoryRow | None = None

    @property
    def name(self) -> str:
        """The id that links to this entry lead to."""
        return self.memory.memory_id if self.twin is None else self.twin.memory.memory_id


def publish(
    tables: Tables,
    change: Records,
    taking: Intake,
    given: Sequence[Incoming],
    vectors: Sequence[bytes | None],
) -> ImportResult:
    """Store the entries; InvalidEntryError or QuotaExceededError, and then none of them."""
    read = [
        _Read(entry, content_hash(entry.memory.content, entry.memory.scope), vector, entry.memory)
        for entry, vector in zip(given, vectors, strict=True)
    ]
    places = _places(read)
    if taking.skip_duplicates:
        for one in read:
            one.twin = _twin(tables, one)
    new = [one for one in read if one.twin is None]
    dropped = sum(_supersede(one, places) for one in new)
    _check_circles(new)
    sources = {one.entry.line: _sources(one, read) for one in new}
    dropped += sum(len(one.entry.derived_from) - len(sources[one.entry.line]) for one in new)
    _check_trust(new, sources)
    tables.require_room(taking.realm.tenant, [one.memory.content for one in new])
    orders: dict[int, int] = {}
    for one in new:
        row = tables.put(one.entry.audience, one.memory, one.digest, one.vector)
        orders[one.entry.line] = row.order
    for one in new:
        if sources[one.entry.line]:
            _derive(tables, one, sources[one.entry.line], orders)
    ids = [one.memory.memory_id for one in new]
    change.record_ids(events.MEMORIES_IMPORTED, taking.realm, ids)
    return ImportResult(len(new), len(read) - len(new), dropped)


def _places(read: Sequence[_Read]) -> dict[tuple[str, str], _Read]:
    places: dict[tuple[str, str], _Read] = {}
    for one in read:
        if one.entry.old_id is None:
            continue
        if (one.entry.audience, one.entry.old_id) in places:
            raise refused(one.entry.line, USED_TWICE)
        places[one.entry.audience, one.entry.old_id] = one
    return places


def _twin(tables: Tables, one: _Read) -> MemoryRow | None:
    memory = one.memory
    same = [
        row
        for row in tables.visible([one.entry.audience])
        if row.digest == one.digest
        and (row.memory.memory_type, row.memory.content) == (memory.memory_type, memory.content)
        and realm_of(row.memory) == realm_of(memory)
    ]
    return min(same, key=lambda row: row.order, default=None)


def _supersede(one: _Read, places: dict[tuple[str, str], _Read]) -> bool:
    """Link to what took the entry's place in the file; True where that is not there."""
    link = one.entry.superseded_by
    later = None if link is None else places.get((one.entry.audience, link))
    if later is None:
        return link is not None
    memory = one.memory
    ends = memory.invalid_at or max(_begins(later.entry.memory), _soonest_end(memory))
    one.memory = replace(memory, superseded_by=later.name, invalid_at=ends)
    return False


def _begins(memory: Memory) -> datetime:
    return memory.valid_from or memory.created_at


def _soonest_end(memory: Memory) -> datetime:
    return memory.created_at if memory.valid_from is None else memory.valid_from + _SMALLEST


def _check_circles(new: Sequence[_Read]) -> None:
    after = {one.memory.memory_id: one.memory.superseded_by for one in new}
    sound: set[str | None] = {None}
    for one in new:
        path: dict[str, int] = {}
        name: str | None = one.memory.memory_id
        while name in after and name not in sound and name not in path:
            path[str(name)] = one.entry.line
            name = after[str(name)]
        if name in path:
            raise refused(one.entry.line, IN_A_CIRCLE)
        sound |= path.keys()


def _sources(one: _Read, read: Sequence[_Read]) -> list[_Read]:
    found: list[_Read] = []
    mine = realm_of(one.memory)
    for named in one.entry.derived_from:
        named_so = [each for each in read if each.entry.old_id == named]
        related = [each for each in named_so if _related(mine, realm_of(each.memory))]
        audience = one.entry.audience
        related.sort(key=lambda each: (each.entry.audience != audience, each.entry.line))
        found += related[:1]
    return found


def _related(one: RealmKey, other: RealmKey) -> bool:
    """One of the two lies within the other, whoever wrote them."""
    here, there = replace(one, agent=None), replace(other, agent=None)
    return here.covers(there) or there.covers(here)


def _check_trust(new: Sequence[_Read], sources: dict[int, list[_Read]]) -> None:
    for one in new:
        lowest = min((_trust(each) for each in sources[one.entry.line]), default=Trust.OWNER)
        if one.memory.trust is not Trust.OWNER and one.memory.trust > lowest:
            raise refused(one.entry.line, ABOVE_SOURCES)


def _trust(one: _Read) -> Trust:
    return one.memory.trust if one.twin is None else one.twin.memory.trust


def _derive(tables: Tables, one: _Read, sources: list[_Read], orders: dict[int, int]) -> None:
    memory = replace(one.memory, derived_from=tuple(each.name for each in sources))
    linked = frozenset(
        orders[each.entry.line] if each.twin is None else each.twin.order for each in sources
    )
    tables.put(one.entry.audience, memory, one.digest, one.vector, linked)
