"""The realm face of a PostgreSQL store: entries over the same rows as the ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.errors import MemoryStoreError, NotFoundError
from muniment.evidence.corpus import Corpus
from muniment.evidence.score import Scored
from muniment.governance.tokens import TokenEstimator
from muniment.stores.embedding import comparable
from muniment.stores.entries import SearchHit
from muniment.stores.entry_face import Entries, Replacing
from muniment.stores.entry_search import EntrySearch, within
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.core import Core, recorded_width
from muniment.stores.postgres.derivations import covered_by, either, seen_by
from muniment.stores.postgres.exporting import write_export
from muniment.stores.postgres.importing import import_stream
from muniment.stores.postgres.realms import by_coverage, chain, parts_of
from muniment.stores.postgres.removals import Place, remove_memories
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.writes import write_memory, write_replacement
from muniment.stores.rows import askable, memory_of, micros
from muniment.stores.transfer import ImportResult, Intake

_PAGE = 500
_EXPORT_SECONDS = 600.0


class PostgresEntries(Entries):
    """Entries by realm in PostgreSQL; see `muniment.stores.entry_face.Entries`."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, core.embedder)
        self._core = core

    async def export_stream(
        self, scope: Scope | MemoryOwner, stream: BinaryIO, *, include_conversations: bool = False
    ) -> int:
        """Write every entry of the realm as JSON Lines; see `FileTransfers.export_stream`.

        All of it is as of one instant.
        """
        realm = realm_key(scope)
        begins = stream.tell() if stream.seekable() else None
        begun = False

        async def job(db: Session) -> int:
            nonlocal begun
            if begun:  # a second attempt begins anew
                _rewind(stream, begins)
            begun = True
            return await write_export(db, realm, stream, talks=include_conversations)

        return await self._core.read(realm.tenant, job, seconds=_EXPORT_SECONDS)

    async def _insert(
        self, realm: RealmKey, key: str, memory: Memory, vector: bytes | None
    ) -> None:
        sources = either(covered_by(realm), seen_by(memory.owner))

        async def job(change: Change) -> None:
            (admitted,) = await self._core.admit(change.db, [vector])
            await write_memory(change, key, memory, vector=admitted, sources=sources)

        await self._core.change(realm.tenant, job)

    async def _entry(self, realm: RealmKey, entry_id: str) -> Memory:
        found = await self._core.read(realm.tenant, lambda db: _found(db, realm, entry_id))
        return found[0][1]

    async def _hits(
        self, realm: RealmKey, search: EntrySearch, asked: Sequence[float] | None
    ) -> list[SearchHit]:
        core, now = self._core, micros(self._core.clock())

        async def job(db: Session) -> list[SearchHit]:
            width = None if asked is None else await recorded_width(db)
            embedding = comparable(asked, width)

            def ranking(corpus: Corpus) -> Sequence[Scored]:
                return search.scored([corpus], now, embedding=embedding, weights=core.ranking)

            ranked = await core.images.realms.scored(db, realm, ranking)
            return await _read(db, realm, search, ranked, now, core.limits.count)

        return await core.read(realm.tenant, job)

    async def _replace(
        self, realm: RealmKey, entry_id: str, replacing: Replacing, vector: bytes | None
    ) -> Memory:
        async def job(change: Change) -> Memory:
            old = await _locked(change.db, realm, entry_id)
            key, new = replacing(old, change.now)
            (admitted,) = await self._core.admit(change.db, [vector])
            return await write_replacement(change, key, old, new, vector=admitted)

        return await self._core.change(realm.tenant, job)

    async def _remove(self, realm: RealmKey, ids: Sequence[str]) -> int:
        async def job(change: Change) -> int:
            gone = 0
            for entry_id in ids:
                found = await _entries(change.db, realm, entry_id)
                places = [Place(audience, memory.memory_id) for audience, memory in found]
                await remove_memories(change, places)
                gone += len(places)
            return gone

        return await self._core.change(realm.tenant, job, may_wait=True)

    async def _chain(self, realm: RealmKey, entry_id: str) -> tuple[Memory, ...]:
        sight = by_coverage(realm)
        return await self._core.read(realm.tenant, lambda db: chain(db, sight, entry_id))

    async def _page(self, realm: RealmKey, after: int) -> Sequence[tuple[int, Memory]]:
        return await self._core.read(realm.tenant, lambda db: _entries_after(db, realm, after))

    async def _take(self, stream: BinaryIO, taking: Intake) -> ImportResult:
        return await import_stream(self._core, stream, taking)


def _rewind(stream: BinaryIO, begins: int | None) -> None:
    if begins is None:
        raise MemoryStoreError("the server went away while the export was being written")
    stream.seek(begins)
    stream.truncate()


async def _entries_after(db: Session, realm: RealmKey, after: int) -> list[tuple[int, Memory]]:
    values = {**parts_of(realm), "after": after, "limit": _PAGE}
    rows = await db.all("export_entries", values)
    return [(row[0], memory_of(row[1:])) for row in rows]


async def _entries(db: Session, realm: RealmKey, entry_id: str) -> list[tuple[int, Memory]]:
    """The rows of this id that the realm covers, each with its audience, narrowest first."""
    rows = await db.all("realm_entries", {**parts_of(realm), "id": askable(entry_id)})
    return sorted(
        ((row[0], memory_of(row[1:])) for row in rows), key=lambda pair: pair[1].scope.width
    )


async def _found(db: Session, realm: RealmKey, entry_id: str) -> list[tuple[int, Memory]]:
    found = await _entries(db, realm, entry_id)
    if not found:
        raise NotFoundError
    return found


async def _locked(db: Session, realm: RealmKey, entry_id: str) -> Memory:
    """The entry once its audience is ours: nobody else is about to replace it."""
    audience, _ = (await _found(db, realm, entry_id))[0]
    await db.one("touch_audience_id", {"audience": audience})
    return (await _found(db, realm, entry_id))[0][1]


async def _read(
    db: Session,
    realm: RealmKey,
    search: EntrySearch,
    ranked: Sequence[Scored],
    now: int,
    count: TokenEstimator,
) -> list[SearchHit]:
    """The ranked rows as hits, read in growing parts; what the search asks is asked again."""
    values = {
        **parts_of(realm),
        "kinds": sorted(search.kinds),
        "trust": search.trust,
        "expired": search.expired,
        "superseded": search.superseded,
        "now": now,
    }
    found: list[tuple[Memory, float]] = []
    hits: list[SearchHit] = []
    start, size = 0, search.k
    while start < len(ranked) and len(hits) < search.k:
        part = ranked[start : start + size]
        rows = await db.all("hydrate_entries", {**values, "seqs": [hit.key for hit in part]})
        memories = {row[0]: memory_of(row[1:]) for row in rows}
        found += [(memories[hit.key], hit.relevance) for hit in part if hit.key in memories]
        hits = within(found, search, count)
        start, size = start + size, size * 4
    return hits
