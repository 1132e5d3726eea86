"""The realm face of a SQLite store: entries over the same rows as the ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import apsw

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.errors import NotFoundError
from muniment.evidence.score import Scored
from muniment.stores.entries import SearchHit
from muniment.stores.entry_face import Entries, Replacing
from muniment.stores.entry_search import EntrySearch, within
from muniment.stores.memory_rows import written
from muniment.stores.rows import askable, memory_of, micros
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.derivations import covered_by, either, seen_by
from muniment.stores.sqlite.exporting import write_export
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.importing import import_stream
from muniment.stores.sqlite.realms import by_coverage, chain, parts_of
from muniment.stores.sqlite.statements import covered
from muniment.stores.sqlite.writes import remove_memory, write_new, write_replacement
from muniment.stores.transfer import ImportResult, Intake

_PAGE = 500


class SQLiteEntries(Entries):
    """Entries by realm in SQLite; see `muniment.stores.entry_face.Entries`."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, core.embedder)
        self._core = core

    async def export_stream(
        self, scope: Scope | MemoryOwner, stream: BinaryIO, *, include_conversations: bool = False
    ) -> int:
        """Write every entry of the realm as JSON Lines; see `FileTransfers.export_stream`."""
        realm = realm_key(scope)
        return await self._core.engine.read_async(
            lambda db: write_export(db, realm, stream, talks=include_conversations)
        )

    async def _insert(
        self, realm: RealmKey, key: str, memory: Memory, vector: bytes | None
    ) -> None:
        row = written(memory, self._core.limits.count)
        derived = memory.derived_from
        sources = either(covered_by(realm), seen_by(memory.owner)) if derived else None

        def job(change: Change) -> None:
            admitted = self._core.admit_one(change.db, vector)
            write_new(change, key, memory, row, vector=admitted, sources=sources)

        await self._core.change(job)

    async def _entry(self, realm: RealmKey, entry_id: str) -> Memory:
        found = await self._core.engine.read_async(lambda db: _found(db, realm, entry_id))
        return found[0][1]

    async def _hits(
        self, realm: RealmKey, search: EntrySearch, asked: Sequence[float] | None
    ) -> list[SearchHit]:
        core, now = self._core, micros(self._core.clock())

        def job(db: apsw.Connection) -> list[SearchHit]:
            embedding = core.comparable(db, asked)
            with core.images.realms.current(db, realm) as corpus:
                ranked = search.scored([corpus], now, embedding=embedding, weights=core.ranking)
            return within(_hydrated(db, realm, search, ranked, now), search, core.limits.count)

        return await core.engine.read_async(job)

    async def _replace(
        self, realm: RealmKey, entry_id: str, replacing: Replacing, vector: bytes | None
    ) -> Memory:
        def job(change: Change) -> Memory:
            old = _found(change.db, realm, entry_id)[0][1]
            key, new = replacing(old, change.now)
            admitted = self._core.admit_one(change.db, vector)
            return write_replacement(change, key, old, new, vector=admitted)

        return await self._core.change(job)

    async def _remove(self, realm: RealmKey, ids: Sequence[str]) -> int:
        def job(change: Change) -> int:
            gone = 0
            for entry_id in ids:
                for audience, memory in _entries(change.db, realm, entry_id):
                    remove_memory(change, audience, memory.memory_id)
                    gone += 1
            return gone

        return await self._core.change(job, may_wait=True)

    async def _chain(self, realm: RealmKey, entry_id: str) -> tuple[Memory, ...]:
        find = by_coverage(realm)
        return await self._core.engine.read_async(lambda db: chain(db, find, entry_id))

    async def _page(self, realm: RealmKey, after: int) -> Sequence[tuple[int, Memory]]:
        values = {**parts_of(realm), "after": after, "limit": _PAGE}

        def job(db: apsw.Connection) -> list[tuple[int, Memory]]:
            rows = db.execute(covered("export_entries", realm), values)
            return [(row[0], memory_of(row[1:])) for row in rows]

        return await self._core.engine.read_async(job)

    async def _take(self, stream: BinaryIO, taking: Intake) -> ImportResult:
        return await import_stream(self._core, stream, taking)


def _entries(db: apsw.Connection, realm: RealmKey, entry_id: str) -> list[tuple[int, Memory]]:
    """The rows of this id that the realm covers, each with its audience, narrowest first."""
    values = {**parts_of(realm), "id": askable(entry_id)}
    rows = db.execute(covered("realm_entries", realm), values)
    return sorted(
        ((row[0], memory_of(row[1:])) for row in rows), key=lambda pair: pair[1].scope.width
    )


def _found(db: apsw.Connection, realm: RealmKey, entry_id: str) -> list[tuple[int, Memory]]:
    found = _entries(db, realm, entry_id)
    if not found:
        raise NotFoundError
    return found


def _hydrated(
    db: apsw.Connection, realm: RealmKey, search: EntrySearch, ranked: Sequence[Scored], now: int
) -> Iterator[tuple[Memory, float]]:
    """The ranked rows as memories, a few at a time; what the search asks is asked again."""
    values = {
        **parts_of(realm),
        "kinds": json_list(sorted(search.kinds)),
        "trust": search.trust,
        "expired": search.expired,
        "superseded": search.superseded,
        "now": now,
    }
    statement = covered("hydrate_entries", realm)
    for start in range(0, len(ranked), search.k):
        part = ranked[start : start + search.k]
        ask = {**values, "seqs": json_list([hit.key for hit in part])}
        rows = {row[0]: memory_of(row[1:]) for row in db.execute(statement, ask)}
        for hit in part:
            if hit.key in rows:
                yield rows[hit.key], hit.relevance
