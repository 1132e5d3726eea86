"""Memories by visibility in this process: repository, index, candidates and facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory
from muniment.domain.owner import owner_user
from muniment.errors import InvalidEntryError
from muniment.evidence.score import Scored
from muniment.governance import events
from muniment.governance.events import Records
from muniment.ports import Candidate, StoredFact
from muniment.stores.asks import Ask
from muniment.stores.embedding import Embedded, RowEmbedder
from muniment.stores.in_memory.derivations import checked_sources, seen_by
from muniment.stores.in_memory.tables import Conversation, MemoryRow, MessageRow, Tables
from muniment.stores.memory_face import Memories
from muniment.stores.provenance import told
from muniment.stores.recalled import recalled_message
from muniment.stores.supersession import closed_for_known, gives_way, is_live, is_twin, succession


class InMemoryMemories(Memories):
    """The memory face of an in-process store; see `muniment.stores.memory_face.Memories`."""

    def __init__(self, tables: Tables, embedder: RowEmbedder) -> None:
        super().__init__(tables, embedder)
        self._tables = tables

    async def _save(self, key: str, memory: Memory, vector: bytes | None) -> Memory:
        digest = content_hash(memory.content, memory.scope)
        async with self._tables.change() as change:
            held = (key, memory.memory_id) in self._tables.memories
            self._tables.put(key, memory, digest, vector, self._sources(key, memory))
            event = events.MEMORY_UPDATED if held else events.MEMORY_SAVED
            change.record_memory(event, memory)
        return memory

    async def _of_id(self, ask: Ask, memory_id: str) -> Sequence[Memory]:
        with self._tables.lock:
            rows = self._rows_of_id(ask, memory_id)
        return [row.memory for row in rows if not row.memory.is_expired_at(ask.now)]

    async def _listed(self, ask: Ask) -> Sequence[Memory]:
        found = sorted(self._answers(ask), key=lambda m: (-m.updated_at.timestamp(), m.memory_id))
        return found[: ask.limit]

    async def _paged(self, ask: Ask, after: tuple[datetime, str] | None) -> Sequence[Memory]:
        start = None if after is None else (-after[0].timestamp(), after[1])
        placed = [((-m.created_at.timestamp(), m.memory_id), m) for m in self._answers(ask)]
        placed.sort(key=lambda pair: pair[0])
        following = [memory for place, memory in placed if start is None or place > start]
        return following[: ask.limit]

    async def _found(self, ask: Ask) -> tuple[Candidate, ...]:
        with self._tables.lock:
            found = ask.scored(
                [self._tables.images[key] for key in ask.all_keys],
                embedding=ask.embedding,
                skipped=self._excluded(ask),
                weights=self._tables.ranking,
            )
            return self._hydrated(ask, found)

    async def _remove(self, ask: Ask, memory_id: str) -> bool:
        async with self._tables.change(may_wait=True) as change:
            rows = self._rows_of_id(ask, memory_id)
            rows.sort(key=lambda row: row.memory.is_expired_at(change.now))
            if rows:
                self._tables.delete(change, rows[0])
        return bool(rows)

    async def _embed(self, key: str, memory: Memory, vector: Embedded) -> None:
        async with self._tables.change():
            row = self._tables.memories.get((key, memory.memory_id))
            if row is not None:
                self._tables.put(key, row.memory, row.digest, vector.vector)

    async def _store_fact(
        self, key: str, memory: Memory, vector: Embedded, supersedes: str | None
    ) -> StoredFact:
        digest = content_hash(memory.content, memory.scope)
        fact = replace(memory, content_hash=digest)
        async with self._tables.change() as change:
            for row in self._tables.visible([key]):
                if row.digest == digest and is_twin(row.memory, fact, change.now):
                    return told(self._known(change, key, row.memory, supersedes), fact)
            if (key, fact.memory_id) in self._tables.memories:
                raise InvalidEntryError("memory_id: names another fact already")
            stored = self._insert_fact(change, key, fact, vector.vector, supersedes)
            change.record_memory(events.MEMORY_SAVED, stored.memory)
            return stored

    def _insert_fact(
        self,
        change: Records,
        audience: str,
        fact: Memory,
        vector: bytes | None,
        supersedes: str | None,
    ) -> StoredFact:
        tables, digest, now = self._tables, fact.content_hash or "", change.now
        sources = self._sources(audience, fact)
        prior = tables.memories.get((audience, supersedes or ""))
        if prior is None or not is_live(prior.memory, now):
            tables.put(audience, fact, digest, vector, sources)
            return StoredFact(fact, created=True)
        fact, changed = succession(fact, prior.memory, lambda row: self._before(audience, row), now)
        tables.put(audience, fact, digest, vector, sources)
        tables.close(change, audience, changed)
        closed = changed[0].memory_id if changed else None
        return StoredFact(fact, created=True, superseded=closed)

    def _known(
        self, change: Records, audience: str, twin: Memory, supersedes: str | None
    ) -> StoredFact:
        """A fact that is known already still closes the one that it replaces."""
        tables, now = self._tables, change.now
        prior = tables.memories.get((audience, supersedes or ""))
        if prior is None or not gives_way(prior.memory, twin, now):
            return StoredFact(twin, created=False)
        changed = closed_for_known(prior.memory, twin, lambda row: self._before(audience, row), now)
        tables.close(change, audience, changed)
        return StoredFact(twin, created=False, superseded=changed[0].memory_id)

    def _before(self, audience: str, memory: Memory) -> Memory | None:
        rows = self._tables.predecessors(self._tables.memories[audience, memory.memory_id])
        return rows[-1].memory if rows else None

    def _sources(self, audience: str, memory: Memory) -> frozenset[int]:
        return checked_sources(self._tables, audience, memory, seen_by(memory.owner))

    def _rows_of_id(self, ask: Ask, memory_id: str) -> list[MemoryRow]:
        """The caller's rows of this id, narrow to wide."""
        held = (self._tables.memories.get((key, memory_id)) for key in ask.keys)
        return [row for row in held if row is not None]

    def _answers(self, ask: Ask) -> list[Memory]:
        with self._tables.lock:
            rows = self._tables.visible(ask.keys)
        return [row.memory for row in rows if _answers(row.memory, ask)]

    def _spoken(self, ask: Ask) -> list[tuple[Conversation, MessageRow]]:
        """The messages of the owner's user, in all sessions."""
        mine = (ask.owner.tenant_id, owner_user(ask.owner))
        return [
            (conversation, row)
            for key, conversation in self._tables.conversations.items()
            if key[:2] == mine
            for row in conversation.messages.values()
        ]

    def _excluded(self, ask: Ask) -> set[int]:
        wanted = frozenset(ask.excluded)
        return {
            row.order
            for conversation, row in (self._spoken(ask) if wanted else ())
            if row.message.message_id in wanted
            and ask.owner.session_id in (None, conversation.identity.session_id)
        }

    def _hydrated(self, ask: Ask, found: Sequence[Scored]) -> tuple[Candidate, ...]:
        wanted = {hit.key for hit in found}
        visible = self._tables.visible(ask.keys)
        rows = {row.order: row.memory for row in visible if row.order in wanted}
        for conversation, row in self._spoken(ask):
            if row.order not in wanted:
                continue
            identity = conversation.identity
            rows[row.order] = recalled_message(
                identity.tenant_id,
                identity.user_id,
                message=row.message,
                session_id=identity.session_id,
                session_only=ask.session is not None,
            )
        return tuple(Candidate(rows[hit.key], hit.relevance, hit.lanes) for hit in found)


def _answers(memory: Memory, ask: Ask) -> bool:
    valid = ask.include_invalid or memory.is_valid_at(ask.as_of or ask.now)
    wanted = memory.memory_type.value in ask.types
    trusted = memory.trust.rank >= ask.trust
    return valid and wanted and trusted and not memory.is_expired_at(ask.now)
