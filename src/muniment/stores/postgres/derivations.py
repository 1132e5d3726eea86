"""What a row is derived from: looked up as its writer sees it, checked, and kept as links."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audiences
from muniment.governance.derivation import check_derivation
from muniment.stores.postgres.audiences import seen
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.realms import parts_of
from muniment.stores.postgres.session import Row
from muniment.stores.rows import micros

SourceFinder = Callable[[Change, Sequence[str]], Awaitable[list[Row]]]

_TRUST = tuple(Trust)


def seen_by(owner: MemoryOwner) -> SourceFinder:
    """Finds what `owner` as the caller may see: nothing expired.

    Another tenant's GLOBAL row has no number here: nothing is linked across tenants.
    """
    keys = seen(audiences(owner))

    async def find(change: Change, ids: Sequence[str]) -> list[Row]:
        values = {**keys, "ids": list(ids), "now": micros(change.now)}
        return await change.db.all("visible_sources", values)

    return find


def covered_by(realm: RealmKey) -> SourceFinder:
    """Finds what belongs to `realm`, expired rows until they are swept."""

    async def find(change: Change, ids: Sequence[str]) -> list[Row]:
        return await change.db.all("covered_sources", {**parts_of(realm), "ids": list(ids)})

    return find


def either(*finders: SourceFinder) -> SourceFinder:
    """Finds what any of `finders` does."""

    async def find(change: Change, ids: Sequence[str]) -> list[Row]:
        rows = [row for each in finders for row in await each(change, ids)]
        return list({(row[0], row[1]): row for row in rows}.values())

    return find


class Derivation:
    """One write's sources: checked before it, linked after it."""

    def __init__(self, change: Change, audience: int, memory: Memory) -> None:
        self._db, self._memory = change.db, memory
        self._place = {"audience": audience, "memory_id": memory.memory_id}
        self._before: tuple[str, ...] = ()
        self._sources: dict[str, tuple[int | None, int]] = {}

    @classmethod
    async def checked(
        cls, change: Change, audience: int, memory: Memory, find: SourceFinder
    ) -> Derivation:
        """InvalidEntryError for a source that is not there, or is trusted less."""
        made = cls(change, audience, memory)
        held = await change.db.one("held_derivation", made._place)
        if held is not None:
            made._before = tuple(json.loads(held[1]))
        itself = None if held is None else held[0]
        found = await find(change, memory.derived_from) if memory.derived_from else []
        made._take([row for row in found if itself is None or row[0] != itself])
        return made

    def _take(self, rows: list[Row]) -> None:
        """Each id's row and trust; of one id in several scopes the narrowest."""
        rows.sort(key=lambda row: (-MemoryScope(row[3]).width, -(row[0] or 0)))
        self._sources = {name: (seq, trust) for seq, name, trust, _ in rows}
        trusts = {name: _TRUST[trust] for name, (_, trust) in self._sources.items()}
        check_derivation(self._memory, trusts, held=self._before)

    async def link(self) -> None:
        """Keep the links of the row, now that it is written."""
        if not self._sources and not self._before:
            return
        held = await self._db.one("held_derivation", self._place)
        assert held is not None  # noqa: S101 - just written
        ids = list(self._memory.derived_from)
        await self._db.run("unlink_sources", {"derived": held[0], "ids": ids})
        sources = [source for source, _ in self._sources.values() if source is not None]
        await self._db.run("link_sources", {"derived": held[0], "sources": sources})
