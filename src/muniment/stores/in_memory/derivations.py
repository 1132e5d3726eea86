"""What a row is derived from: looked up as its writer sees it, and checked."""

from __future__ import annotations

from collections.abc import Callable

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, realm_of
from muniment.domain.visibility import audiences
from muniment.governance.derivation import check_derivation
from muniment.stores.in_memory.tables import MemoryRow, Tables

SourceFinder = Callable[[Tables, str], list[MemoryRow]]


def seen_by(owner: MemoryOwner) -> SourceFinder:
    """Finds what `owner` as the caller may see, narrow to wide: nothing expired."""

    def find(tables: Tables, memory_id: str) -> list[MemoryRow]:
        now = tables.clock()
        held = (tables.memories.get((key, memory_id)) for key in audiences(owner))
        return [row for row in held if row is not None and not row.memory.is_expired_at(now)]

    return find


def covered_by(realm: RealmKey) -> SourceFinder:
    """Finds what belongs to `realm`, expired rows until they are swept."""

    def find(tables: Tables, memory_id: str) -> list[MemoryRow]:
        rows = [row for row in tables.memories.values() if row.memory.memory_id == memory_id]
        mine = [row for row in rows if realm.covers(realm_of(row.memory))]
        return sorted(mine, key=lambda row: (row.memory.scope.width, row.order))

    return find


def either(*finders: SourceFinder) -> SourceFinder:
    """Finds what any of `finders` does, narrow to wide."""

    def find(tables: Tables, memory_id: str) -> list[MemoryRow]:
        found = {row.order: row for each in finders for row in each(tables, memory_id)}
        return sorted(found.values(), key=lambda row: (row.memory.scope.width, row.order))

    return find


def checked_sources(
    tables: Tables, audience: str, memory: Memory, find: SourceFinder
) -> frozenset[int]:
    """The rows that `memory` is derived from; InvalidEntryError where it cannot be."""
    held = tables.memories.get((audience, memory.memory_id))
    found: dict[str, MemoryRow] = {}
    for memory_id in memory.derived_from:
        others = [row for row in find(tables, memory_id) if row is not held]
        found.update((memory_id, row) for row in others[:1])
    trust = {memory_id: row.memory.trust for memory_id, row in found.items()}
    check_derivation(memory, trust, held=() if held is None else held.memory.derived_from)
    kept = () if held is None else tables.still_named(held.sources, memory.derived_from)
    return frozenset(row.order for row in found.values()) | frozenset(kept)
