"""The realm face of a PostgreSQL store: entries over the same rows as the ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.domain.trust import Trust
from muniment.errors import MemoryStoreError, NotFoundError
from muniment.evidence.corpus import Corpus
from muniment.evidence.score import Scored, score
from muniment.evidence.vectors import unpack_vector
from muniment.governance.tokens import TokenEstimator
from muniment.stores.entries import (
    DEFAULT_IMPORTANCE,
    DEFAULT_KIND,
    DEFAULT_SOURCE,
    MemoryEntry,
    SearchHit,
    checked_entry,
    entry_ids,
    entry_of,
    new_entry,
    replacement,
)
from muniment.stores.entry_search import EntrySearch, entry_search, within
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.core import Core
from muniment.stores.postgres.derivations import covered_by, either, seen_by
from muniment.stores.postgres.importing import import_stream
from muniment.stores.postgres.realms import by_coverage, chain, parts_of
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.writes import remove_memory, write_memory, write_replacement
from muniment.stores.rows import Row, askable, memory_of, micros
from muniment.stores.transfer import (
    MAX_BYTES,
    MAX_ENTRIES,
    ImportResult,
    exported,
    header_line,
    intake,
    json_line,
)
from muniment.stores.transfer_files import FileTransfers

_PAGE = 500
_EXPORT_SECONDS = 600.0


class PostgresEntries(FileTransfers):
    """Entries by realm. A realm is a Scope, or an owner; every query filters by it.

    Raises ScopeError for a malformed realm, InvalidEntryError for what breaks a rule (nothing is
    stored then) and NotFoundError for an id that the realm does not cover.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def add(
        self,
        scope: Scope | MemoryOwner,
        text: str,
        *,
        kind: MemoryType | str = DEFAULT_KIND,
        trust: Trust | str = Trust.UNTRUSTED,
        source: str = DEFAULT_SOURCE,
        importance: float = DEFAULT_IMPORTANCE,
        expires_at: datetime | None = None,
        derived_from: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> MemoryEntry:
        """Store an entry under a new id; `importance` is 0..1, at most 100 `derived_from` ids."""
        realm = realm_key(scope)
        memory = new_entry(
            realm,
            text,
            kind=kind,
            trust=trust,
            source=source,
            importance=importance,
            now=self._core.clock(),
            expires_at=expires_at,
            derived_from=derived_from,
            metadata=metadata,
        )
        key = checked_entry(memory, self._core.limits.max_text_bytes)
        sources = either(covered_by(realm), seen_by(memory.owner))
        made = await self._core.embedder.one(memory.content)

        async def job(change: Change) -> Memory:
            (vector,) = await self._core.admit(change.db, [made])
            return await write_memory(change, key, memory, vector=vector, sources=sources)

        return entry_of(await self._core.change(realm.tenant, job))

    async def get(self, scope: Scope | MemoryOwner, entry_id: str) -> MemoryEntry:
        """The entry of this id, expired or not; of several the one of the narrowest scope."""
        realm = realm_key(scope)
        found = await self._core.read(realm.tenant, lambda db: _found(db, realm, entry_id))
        return entry_of(found[0][1])

    async def search(
        self,
        scope: Scope | MemoryOwner,
        query: str,
        *,
        k: int = 5,
        kinds: Sequence[MemoryType | str] | None = None,
        min_trust: Trust | str | None = None,
        include_superseded: bool = False,
        include_expired: bool = False,
        max_tokens: int | None = None,
    ) -> list[SearchHit]:
        """The best entries for plain words, at most 50; words past the 32nd are ignored.

        `max_tokens` bounds what is returned: an entry that does not fit is skipped and the next
        tried. InvalidEntryError for a query of more than 1000 bytes.
        """
        realm = realm_key(scope)
        search = entry_search(
            query,
            k=k,
            kinds=kinds,
            min_trust=min_trust,
            include_superseded=include_superseded,
            include_expired=include_expired,
            max_tokens=max_tokens,
            most=self._core.limits.max_results,
        )
        return [] if search.hopeless else await self._found(realm, search)

    async def _found(self, realm: RealmKey, search: EntrySearch) -> list[SearchHit]:
        core, now = self._core, micros(self._core.clock())
        made = await core.embedder.one(search.text)
        asked = None if made is None else unpack_vector(made).tolist()

        async def job(db: Session) -> list[SearchHit]:
            embedding = await core.comparable(db, asked)

            def ranking(corpus: Corpus) -> Sequence[Scored]:
                filters = search.filters(now)
                return score(
                    [corpus],
                    search.question,
                    embedding=embedding,
                    weights=core.ranking,
                    **filters,
                )

            ranked = await core.images.realms.scored(db, realm, ranking)
            return await _hits(db, realm, search, ranked, now, core.limits.count)

        hits = await core.read(realm.tenant, job)
        tokens = sum(core.limits.count(hit.entry.text) for hit in hits)
        core.served.note(realm.tenant, len(hits), tokens)
        return hits

    async def supersede(
        self,
        scope: Scope | MemoryOwner,
        entry_id: str,
        text: str,
        *,
        kind: MemoryType | str | None = None,
        source: str = DEFAULT_SOURCE,
        trust: Trust | str = Trust.UNTRUSTED,
        importance: float | None = None,
        expires_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> MemoryEntry:
        """Store what takes an entry's place, in the same realm; the old one is kept and linked.

        What is None stays as it was. InvalidEntryError for an entry that was superseded before.
        """
        realm, limit = realm_key(scope), self._core.limits.max_text_bytes
        made = await self._core.embedder.one(text) if isinstance(text, str) else None

        async def job(change: Change) -> Memory:
            old = await _locked(change.db, realm, entry_id)
            new = replacement(
                old,
                text,
                kind=kind,
                source=source,
                trust=trust,
                importance=importance,
                expires_at=expires_at,
                metadata=metadata,
                now=change.now,
            )
            (vector,) = await self._core.admit(change.db, [made])
            return await write_replacement(
                change, checked_entry(new, limit), old, new, vector=vector
            )

        return entry_of(await self._core.change(realm.tenant, job))

    async def forget(self, scope: Scope | MemoryOwner, ids: Iterable[str]) -> int:
        """Delete entries, at most 1000 ids; how many. What one had replaced is current again."""
        realm, wanted = realm_key(scope), entry_ids(ids)

        async def job(change: Change) -> int:
            gone = 0
            for entry_id in wanted:
                for audience, memory in await _entries(change.db, realm, entry_id):
                    await remove_memory(change, audience, memory.memory_id)
                    gone += 1
            return gone

        return await self._core.change(realm.tenant, job, may_wait=True) if wanted else 0

    async def history(self, scope: Scope | MemoryOwner, entry_id: str) -> tuple[MemoryEntry, ...]:
        """The chain of supersessions that the entry is part of, oldest first."""
        realm = realm_key(scope)
        find = by_coverage(realm)
        found = await self._core.read(realm.tenant, lambda db: chain(db, find, entry_id))
        if not found:
            raise NotFoundError
        return tuple(map(entry_of, found))

    async def export(self, scope: Scope | MemoryOwner) -> AsyncIterator[dict[str, Any]]:
        """Every entry of the realm, superseded and expired ones too, in order of arrival."""
        realm, after = realm_key(scope), 0
        while rows := await self._page(realm, after):
            for row in rows:
                yield exported(memory_of(row[1:]))
            after = rows[-1][0]

    async def export_stream(
        self, scope: Scope | MemoryOwner, stream: BinaryIO, *, include_conversations: bool = False
    ) -> int:
        """Write every entry of the realm as JSON Lines, after a header, as of one instant.

        Entries alone: MemoryStoreError for `include_conversations`.
        """
        realm = realm_key(scope)
        _require_entries_alone(include_conversations)

        async def job(db: Session) -> int:
            stream.seek(0)  # a second attempt begins anew
            stream.truncate()
            found = await db.one("count_entries", parts_of(realm))
            count = 0 if found is None else int(found[0])
            stream.write(header_line(count))
            place = {**parts_of(realm), "after": 0, "limit": _PAGE}
            while rows := await db.all("export_entries", place):
                for row in rows:
                    stream.write(json_line(exported(memory_of(row[1:]))))
                place["after"] = rows[-1][0]
            return count

        return await self._core.read(realm.tenant, job, seconds=_EXPORT_SECONDS)

    async def import_stream(
        self,
        scope: Scope | MemoryOwner,
        stream: BinaryIO,
        *,
        max_trust: Trust | str = Trust.UNTRUSTED,
        rescope: bool = False,
        skip_duplicates: bool = True,
        shared: bool = False,
        include_conversations: bool = False,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
    ) -> ImportResult:
        """Store a file's entries, all or none; see `FileTransfers.import_stream`.

        Entries alone: MemoryStoreError for `include_conversations`.
        """
        _require_entries_alone(include_conversations)
        taking = intake(
            realm_key(scope),
            max_trust=max_trust,
            rescope=rescope,
            skip_duplicates=skip_duplicates,
            shared=shared,
            max_entries=max_entries,
            max_bytes=max_bytes,
            max_text_bytes=self._core.limits.max_text_bytes,
        )
        return await import_stream(self._core, stream, taking)

    async def _page(self, realm: RealmKey, after: int) -> list[Row]:
        values = {**parts_of(realm), "after": after, "limit": _PAGE}
        return await self._core.read(realm.tenant, lambda db: db.all("export_entries", values))


def _require_entries_alone(include_conversations: bool) -> None:
    if include_conversations:
        raise MemoryStoreError("PostgreSQL exports and imports entries, and no conversations")


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


async def _hits(
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
