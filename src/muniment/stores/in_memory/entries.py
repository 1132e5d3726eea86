"""The realm face: entries over the same rows as the ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key, realm_of
from muniment.domain.trust import Trust
from muniment.errors import NotFoundError
from muniment.evidence.corpus import Corpus
from muniment.evidence.score import score
from muniment.evidence.vectors import unpack_vector
from muniment.governance import events
from muniment.stores.embedding import RowEmbedder
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
from muniment.stores.in_memory.derivations import checked_sources, covered_by, either, seen_by
from muniment.stores.in_memory.importing import publish
from muniment.stores.in_memory.importing_talks import (
    check_talks,
    embedded,
    exported_talks,
    publish_talks,
)
from muniment.stores.in_memory.tables import MemoryRow, Tables, memory_image
from muniment.stores.rows import micros
from muniment.stores.supersession import chronological, replaced
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
from muniment.stores.transfer_reading import Incoming, read_lines


class InMemoryEntries(FileTransfers):
    """Entries by realm; raises ScopeError, InvalidEntryError and NotFoundError."""

    def __init__(self, tables: Tables, embedder: RowEmbedder) -> None:
        self._tables = tables
        self._embedder = embedder

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
        """Store an entry under a new id."""
        realm = realm_key(scope)
        memory = new_entry(
            realm,
            text,
            kind=kind,
            trust=trust,
            source=source,
            importance=importance,
            now=self._tables.clock(),
            expires_at=expires_at,
            derived_from=derived_from,
            metadata=metadata,
        )
        audience = checked_entry(memory, self._tables.limits.max_text_bytes)
        vector = await self._embedder.one(memory.content)
        async with self._tables.change() as change:
            find = either(covered_by(realm), seen_by(memory.owner))
            sources = checked_sources(self._tables, audience, memory, find)
            digest = content_hash(memory.content, memory.scope)
            self._tables.put(audience, memory, digest, vector, sources)
            change.record_memory(events.MEMORY_SAVED, memory)
        return entry_of(memory)

    async def get(self, scope: Scope | MemoryOwner, entry_id: str) -> MemoryEntry:
        """The entry of this id, expired or not; of several the one of the narrowest scope."""
        with self._tables.lock:
            return entry_of(self._found(realm_key(scope), entry_id)[0].memory)

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
        """The best entries for plain words."""
        realm = realm_key(scope)
        search = entry_search(
            query,
            k=k,
            kinds=kinds,
            min_trust=min_trust,
            include_superseded=include_superseded,
            include_expired=include_expired,
            max_tokens=max_tokens,
            most=self._tables.limits.max_results,
        )
        if search.hopeless:
            return []
        vector = await self._embedder.one(search.text)
        with self._tables.lock:
            hits = self._ranked(realm, search, vector)
        tokens = sum(self._tables.limits.count(hit.entry.text) for hit in hits)
        self._tables.served.note(realm.tenant, len(hits), tokens)
        return hits

    def _ranked(
        self, realm: RealmKey, search: EntrySearch, vector: bytes | None
    ) -> list[SearchHit]:
        rows = {row.order: row for row in self._covered(realm)}
        corpus = Corpus()
        corpus.upsert(map(_image, rows.values()))
        found = score(
            [corpus],
            search.question,
            embedding=None if vector is None else unpack_vector(vector).tolist(),
            weights=self._tables.ranking,
            **search.filters(micros(self._tables.clock())),
        )
        ranked = ((rows[hit.key].memory, hit.relevance) for hit in found)
        return within(ranked, search, self._tables.limits.count)

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
        """Store what takes an entry's place, in the same realm; the old one is kept and linked."""
        realm = realm_key(scope)
        vector = await self._embedder.one(text) if isinstance(text, str) else None
        async with self._tables.change() as change:
            now, old = change.now, self._found(realm, entry_id)[0]
            new = replacement(
                old.memory,
                text,
                kind=kind,
                source=source,
                trust=trust,
                importance=importance,
                expires_at=expires_at,
                metadata=metadata,
                now=now,
            )
            checked_entry(new, self._tables.limits.max_text_bytes)
            new, changed = replaced(old.memory, new, lambda row: self._before(old, row), now)
            self._put(old.audience, new, vector)
            self._tables.close(change, old.audience, changed)
            change.record_memory(events.MEMORY_SAVED, new)
        return entry_of(new)

    async def forget(self, scope: Scope | MemoryOwner, ids: Iterable[str]) -> int:
        """Delete entries, at most 1000 ids; how many. What one had replaced is current again."""
        realm, wanted = realm_key(scope), entry_ids(ids)
        async with self._tables.change(may_wait=True) as change:
            gone = [row for entry_id in wanted for row in self._entries(realm, entry_id)]
            for row in gone:
                held = self._tables.memories[row.audience, row.memory.memory_id]
                self._tables.delete(change, held)
        return len(gone)

    async def history(self, scope: Scope | MemoryOwner, entry_id: str) -> tuple[MemoryEntry, ...]:
        """The chain of supersessions that the entry is part of, oldest first."""
        realm = realm_key(scope)
        with self._tables.lock:
            audience = self._found(realm, entry_id)[0].audience
            beside = [row.memory for row in self._covered(realm) if row.audience == audience]
        return tuple(map(entry_of, chronological(entry_id, beside)))

    async def export(self, scope: Scope | MemoryOwner) -> AsyncIterator[dict[str, Any]]:
        """Every entry of the realm, superseded and expired ones too, in order of arrival."""
        with self._tables.lock:
            rows = sorted(self._covered(realm_key(scope)), key=lambda row: row.order)
        for row in rows:
            yield exported(row.memory)

    async def export_stream(
        self, scope: Scope | MemoryOwner, stream: BinaryIO, *, include_conversations: bool = False
    ) -> int:
        """Write every entry of the realm as JSON Lines; see `FileTransfers.export_stream`."""
        entries = [entry async for entry in self.export(scope)]
        with self._tables.lock:
            talks = exported_talks(self._tables, realm_key(scope)) if include_conversations else []
        stream.write(header_line(len(entries), len(talks) if include_conversations else None))
        stream.writelines(map(json_line, [*entries, *talks]))
        return len(entries)

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
        """Store a file's entries, all or none; see `FileTransfers.import_stream`."""
        taking = intake(
            realm_key(scope),
            max_trust=max_trust,
            rescope=rescope,
            skip_duplicates=skip_duplicates,
            shared=shared,
            include_conversations=include_conversations,
            max_entries=max_entries,
            max_bytes=max_bytes,
            max_text_bytes=self._tables.limits.max_text_bytes,
        )
        read = list(read_lines(stream, taking, now=self._tables.clock()))
        given = [one for one in read if isinstance(one, Incoming)]
        talks = [one for one in read if not isinstance(one, Incoming)]
        vectors = await self._embedder.many([entry.memory.content for entry in given])
        said = await self._embedder.many(list(map(embedded, talks)))
        async with self._tables.change() as change:
            check_talks(self._tables, talks)
            result = publish(self._tables, change, taking, given, vectors)
            sessions, messages = publish_talks(self._tables, change, talks, said)
            return replace(result, sessions=sessions, messages=messages)

    def _put(self, audience: str, memory: Memory, vector: bytes | None) -> None:
        self._tables.put(audience, memory, content_hash(memory.content, memory.scope), vector)

    def _before(self, old: MemoryRow, memory: Memory) -> Memory | None:
        row = self._tables.memories[old.audience, memory.memory_id]
        rows = self._tables.predecessors(row)
        return rows[-1].memory if rows else None

    def _covered(self, realm: RealmKey) -> list[MemoryRow]:
        rows = self._tables.memories.values()
        return [row for row in rows if realm.covers(realm_of(row.memory))]

    def _entries(self, realm: RealmKey, entry_id: str) -> list[MemoryRow]:
        rows = [row for row in self._covered(realm) if row.memory.memory_id == str(entry_id)]
        return sorted(rows, key=lambda row: (row.memory.scope.width, row.order))

    def _found(self, realm: RealmKey, entry_id: str) -> list[MemoryRow]:
        found = self._entries(realm, entry_id)
        if not found:
            raise NotFoundError
        return found


def _image(row: MemoryRow) -> Any:
    """The row as ranking reads it; one that was replaced is over, whenever that was."""
    image, memory = memory_image(row), row.memory
    if memory.superseded_by is None or memory.invalid_at is not None:
        return image
    return image._replace(invalid_at=memory.created_at.timestamp())
