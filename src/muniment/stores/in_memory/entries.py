"""The realm face of the in-process store: entries over the same rows as the ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key, realm_of
from muniment.errors import NotFoundError
from muniment.evidence.corpus import Corpus
from muniment.governance import events
from muniment.stores.embedding import RowEmbedder
from muniment.stores.entries import SearchHit
from muniment.stores.entry_face import Entries, Replacing
from muniment.stores.entry_search import EntrySearch, within
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
from muniment.stores.transfer import ImportResult, Intake, header_line, json_line
from muniment.stores.transfer_reading import Incoming, read_lines


class InMemoryEntries(Entries):
    """Entries by realm in this process; see `muniment.stores.entry_face.Entries`."""

    def __init__(self, tables: Tables, embedder: RowEmbedder) -> None:
        super().__init__(tables, embedder)
        self._tables = tables

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

    async def _insert(
        self, realm: RealmKey, key: str, memory: Memory, vector: bytes | None
    ) -> None:
        async with self._tables.change() as change:
            find = either(covered_by(realm), seen_by(memory.owner))
            sources = checked_sources(self._tables, key, memory, find)
            digest = content_hash(memory.content, memory.scope)
            self._tables.put(key, memory, digest, vector, sources)
            change.record_memory(events.MEMORY_SAVED, memory)

    async def _entry(self, realm: RealmKey, entry_id: str) -> Memory:
        with self._tables.lock:
            return self._found(realm, entry_id)[0].memory

    async def _hits(
        self, realm: RealmKey, search: EntrySearch, asked: Sequence[float] | None
    ) -> list[SearchHit]:
        with self._tables.lock:
            rows = {row.order: row for row in self._covered(realm)}
            corpus = Corpus()
            corpus.upsert(map(_image, rows.values()))
            now, ranking = micros(self._tables.clock()), self._tables.ranking
            found = search.scored([corpus], now, embedding=asked, weights=ranking)
            ranked = ((rows[hit.key].memory, hit.relevance) for hit in found)
            return within(ranked, search, self._tables.limits.count)

    async def _replace(
        self, realm: RealmKey, entry_id: str, replacing: Replacing, vector: bytes | None
    ) -> Memory:
        async with self._tables.change() as change:
            old = self._found(realm, entry_id)[0]
            _, new = replacing(old.memory, change.now)
            new, changed = replaced(old.memory, new, lambda row: self._before(old, row), change.now)
            self._put(old.audience, new, vector)
            self._tables.close(change, old.audience, changed)
            change.record_memory(events.MEMORY_SAVED, new)
        return new

    async def _remove(self, realm: RealmKey, ids: Sequence[str]) -> int:
        async with self._tables.change(may_wait=True) as change:
            gone = [row for entry_id in ids for row in self._entries(realm, entry_id)]
            for row in gone:
                held = self._tables.memories[row.audience, row.memory.memory_id]
                self._tables.delete(change, held)
        return len(gone)

    async def _chain(self, realm: RealmKey, entry_id: str) -> tuple[Memory, ...]:
        with self._tables.lock:
            start = self._entries(realm, entry_id)[:1]
            beside = [
                row.memory
                for row in self._covered(realm)
                if start and row.audience == start[0].audience
            ]
        return chronological(entry_id, beside) if start else ()

    async def _page(self, realm: RealmKey, after: int) -> Sequence[tuple[int, Memory]]:
        with self._tables.lock:
            rows = [(row.order, row.memory) for row in self._covered(realm) if row.order > after]
        return sorted(rows, key=lambda row: row[0])

    async def _take(self, stream: BinaryIO, taking: Intake) -> ImportResult:
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
