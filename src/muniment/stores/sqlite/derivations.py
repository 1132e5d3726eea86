"""What a row is derived from: looked up as its writer sees it, checked, and kept as links."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audiences
from muniment.governance.derivation import check_derivation
from muniment.stores.rows import Row, micros
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.realms import parts_of
from muniment.stores.sqlite.statements import SQL, covered

SourceFinder = Callable[[Change, Sequence[str]], list[Row]]

_TRUST = tuple(Trust)


def seen_by(owner: MemoryOwner) -> SourceFinder:
    """Finds what `owner` as the caller may see: nothing expired."""

    def find(change: Change, ids: Sequence[str]) -> list[Row]:
        values = (json_list(ids), json_list(audiences(owner)), micros(change.now))
        return change.db.execute(SQL["visible_sources"], values).fetchall()

    return find


def covered_by(realm: RealmKey) -> SourceFinder:
    """Finds what belongs to `realm`, expired rows until they are swept."""

    def find(change: Change, ids: Sequence[str]) -> list[Row]:
        values = {**parts_of(realm), "ids": json_list(ids)}
        return change.db.execute(covered("covered_sources", realm), values).fetchall()

    return find


def either(*finders: SourceFinder) -> SourceFinder:
    """Finds what any of `finders` does."""

    def find(change: Change, ids: Sequence[str]) -> list[Row]:
        return list({row[0]: row for each in finders for row in each(change, ids)}.values())

    return find


class Derivation:
    """One write's sources: checked before it, linked after it."""

    def __init__(self, change: Change, audience: int, memory: Memory, find: SourceFinder) -> None:
        """InvalidEntryError for a source that is not there, or is trusted less."""
        self._db, self._memory = change.db, memory
        self._place = (audience, memory.memory_id)
        held = change.db.execute(SQL["held_derivation"], self._place).fetchone()
        self._before: tuple[str, ...] = () if held is None else tuple(json.loads(held[1]))
        self._sources = self._found(change, None if held is None else held[0], find)
        check_derivation(
            memory,
            {name: _TRUST[trust] for name, (_, trust) in self._sources.items()},
            held=self._before,
        )

    def _found(
        self, change: Change, itself: int | None, find: SourceFinder
    ) -> dict[str, tuple[int, int]]:
        """Each id's row and trust; of one id in several scopes the narrowest."""
        names = self._memory.derived_from
        rows = [row for row in find(change, names) if row[0] != itself] if names else []
        rows.sort(key=lambda row: (-MemoryScope(row[3]).width, -row[0]))
        return {name: (seq, trust) for seq, name, trust, _ in rows}

    def link(self) -> None:
        """Keep the links of the row, now that it is written."""
        if not self._sources and not self._before:
            return
        (seq, _) = self._db.execute(SQL["held_derivation"], self._place).get
        named = json_list(self._memory.derived_from)
        self._db.execute(SQL["unlink_sources"], (seq, named))
        found = [source for source, _ in self._sources.values()]
        self._db.execute(SQL["link_sources"], (seq, json_list(found)))
