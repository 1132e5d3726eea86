"""Memories by visibility: repository, index, candidates and facts over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.query import MemoryMatch, MemoryQuery, Reach
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audiences, message_audience
from muniment.errors import InvalidEntryError
from muniment.evidence.corpus import MESSAGE
from muniment.evidence.score import Scored, score
from muniment.evidence.vectors import pack_vector
from muniment.governance import events
from muniment.governance.events import Records
from muniment.ports import Candidate, StoredFact
from muniment.stores.embedding import RowEmbedder
from muniment.stores.in_memory.derivations import checked_sources, seen_by
from muniment.stores.in_memory.tables import Conversation, MemoryRow, MessageRow, Tables
from muniment.stores.limits import checked_memory, within_tokens
from muniment.stores.provenance import told
from muniment.stores.recalled import recalled_message
from muniment.stores.supersession import closed_for_known, is_live, is_twin, succession

_MOST_COMPARED = 1_000


class InMemoryMemories:
    """The memory face: MemoryRepository, MemoryIndex, MemoryCandidates and FactStore."""

    takes_reach = True

    def __init__(self, tables: Tables, embedder: RowEmbedder) -> None:
        self._tables = tables
        self._embedder = embedder

    async def save(self, memory: Memory) -> Memory:
        """Store or update one's own row; MemoryScopeError, InvalidEntryError."""
        audience, stored = self._checked(memory)
        vector = await self._embedder.one(stored.content)
        digest = content_hash(stored.content, stored.scope)
        async with self._tables.change() as change:
            held = (audience, stored.memory_id) in self._tables.memories
            self._tables.put(audience, stored, digest, vector, self._sources(audience, stored))
            event = events.MEMORY_UPDATED if held else events.MEMORY_SAVED
            change.record_memory(event, stored)
        return stored

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        """The caller's memory of this id, of the narrowest scope; None where there is none."""
        with self._tables.lock:
            rows = [row for row in self._of_id(caller, memory_id) if not self._expired(row)]
        return rows[0].memory if rows else None

    async def search(self, query: MemoryQuery) -> tuple[Memory, ...]:
        """With text the most relevant first, else the last changed first."""
        if query.text is None:
            found = self._listed(query)[: query.limit]
        else:
            found = [hit.memory for hit in self._matched(query, None, limit=query.limit)]
        return within_tokens(found, query.max_tokens, self._tables.limits.count)

    async def page(
        self, query: MemoryQuery, *, after: tuple[datetime, str] | None = None
    ) -> tuple[Memory, ...]:
        """The newest by creation that follow the place `after`."""
        start = None if after is None else (-after[0].timestamp(), after[1])
        placed = [((-m.created_at.timestamp(), m.memory_id), m) for m in self._listed(query)]
        placed.sort(key=lambda pair: pair[0])
        following = [memory for place, memory in placed if start is None or place > start]
        return tuple(following[: query.limit])

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        """Delete what `get` answers, or an expired row; False where the caller sees none."""
        async with self._tables.change(may_wait=True) as change:
            rows = sorted(self._of_id(caller, memory_id), key=self._expired)
            if rows:
                self._tables.delete(change, rows[0])
        return bool(rows)

    async def index_memory(self, memory: Memory, embedding: Sequence[float] | None = None) -> None:
        """Give one's stored row this vector, or the embedder's; an unknown row is passed over."""
        audience, stored = self._checked(memory)
        vector = await self._vector(stored.content, embedding)
        async with self._tables.change():
            row = self._tables.memories.get((audience, stored.memory_id))
            if row is not None:
                self._tables.put(audience, row.memory, row.digest, vector)

    async def search_memories(
        self, query: MemoryQuery, embedding: Sequence[float] | None = None
    ) -> tuple[MemoryMatch, ...]:
        """By cosine similarity where there is an embedding, else by relevance in words."""
        if embedding is None:
            found = self._matched(query, None, limit=query.limit)
            return tuple(MemoryMatch(hit.memory.memory_id, hit.relevance) for hit in found)
        found = self._matched(query, embedding, limit=_MOST_COMPARED)
        matches = [MemoryMatch(hit.memory.memory_id, hit.lanes["cosine"]) for hit in found]
        matches.sort(key=lambda match: (-match.score, match.memory_id))
        return tuple(matches[: query.limit])

    async def delete_memory(self, owner: MemoryOwner, memory_id: str) -> None:
        """Nothing to do: a row and its index are one."""

    async def candidates(
        self,
        owner: MemoryOwner,
        text: str,
        *,
        embedding: Sequence[float] | None = None,
        scopes: Sequence[MemoryScope],
        memory_types: Sequence[MemoryType],
        messages: str = "off",
        session_id: str | None = None,
        exclude_message_ids: Sequence[str] = (),
        as_of: datetime | None = None,
        min_trust: Trust | None = None,
        limit: int = 100,
        reach: Reach | None = None,
    ) -> tuple[Candidate, ...]:
        """Recall's candidates, best first; empty `scopes` or `memory_types` match nothing."""
        spoken = self._message_key(owner, messages, session_id)
        keys = [*(audiences(owner, scopes) if scopes else ()), *spoken]
        kinds = {*map(str, memory_types), *([MESSAGE] if spoken else [])}
        session = session_id if messages == "session" else None
        with self._tables.lock:
            found = score(
                [self._tables.images[key] for key in keys],
                text,
                embedding=embedding,
                now=self._tables.clock().timestamp(),
                as_of=None if as_of is None else as_of.timestamp(),
                kinds=kinds,
                session=session,
                exclude_keys=self._excluded(owner, exclude_message_ids),
                min_trust=0 if min_trust is None else Trust(min_trust).rank,
                limit=limit,
                reach=reach,
                weights=self._tables.ranking,
            )
            return self._hydrated(owner, keys, found, session_only=session is not None)

    def note_served(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        """Count one search that gave out these."""
        tokens = sum(self._tables.limits.count(memory.content) for memory in memories)
        self._tables.served.note(tenant_id, len(memories), tokens)

    async def store_fact(
        self,
        memory: Memory,
        *,
        supersedes: str | None = None,
        embedding: Sequence[float] | None = None,
    ) -> StoredFact:
        """A fact that exists once in its audience; see `muniment.ports.FactStore`."""
        audience, fact = self._checked(memory)
        digest = content_hash(fact.content, fact.scope)
        fact = replace(fact, content_hash=digest)
        vector = await self._vector(fact.content, embedding)
        async with self._tables.change() as change:
            for row in self._tables.visible([audience]):
                if row.digest == digest and is_twin(row.memory, fact, change.now):
                    return told(self._known(change, audience, row.memory, supersedes), fact)
            if (audience, fact.memory_id) in self._tables.memories:
                raise InvalidEntryError("memory_id: names another fact already")
            stored = self._insert_fact(change, audience, fact, vector, supersedes)
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
        if prior is None or prior.memory == twin or not is_live(prior.memory, now):
            return StoredFact(twin, created=False)
        if not is_live(twin, now):
            return StoredFact(twin, created=False)
        changed = closed_for_known(prior.memory, twin, lambda row: self._before(audience, row), now)
        tables.close(change, audience, changed)
        return StoredFact(twin, created=False, superseded=changed[0].memory_id)

    def _before(self, audience: str, memory: Memory) -> Memory | None:
        rows = self._tables.predecessors(self._tables.memories[audience, memory.memory_id])
        return rows[-1].memory if rows else None

    def _checked(self, memory: Memory) -> tuple[str, Memory]:
        return checked_memory(memory, self._tables.limits.max_text_bytes)

    def _sources(self, audience: str, memory: Memory) -> frozenset[int]:
        return checked_sources(self._tables, audience, memory, seen_by(memory.owner))

    async def _vector(self, content: str, embedding: Sequence[float] | None) -> bytes | None:
        return await self._embedder.one(content) if embedding is None else pack_vector(embedding)

    def _expired(self, row: MemoryRow) -> bool:
        return row.memory.is_expired_at(self._tables.clock())

    def _of_id(self, caller: MemoryOwner, memory_id: str) -> list[MemoryRow]:
        """The caller's rows of this id, narrow to wide."""
        held = (self._tables.memories.get((key, memory_id)) for key in audiences(caller))
        return [row for row in held if row is not None]

    def _listed(self, query: MemoryQuery) -> list[Memory]:
        now = self._tables.clock()
        with self._tables.lock:
            rows = self._tables.visible(audiences(query.owner, query.scopes))
        found = [row.memory for row in rows if _answers(row.memory, query, now)]
        return sorted(found, key=lambda memory: (-memory.updated_at.timestamp(), memory.memory_id))

    def _matched(
        self, query: MemoryQuery, embedding: Sequence[float] | None, *, limit: int
    ) -> tuple[Candidate, ...]:
        keys = audiences(query.owner, query.scopes)
        with self._tables.lock:
            found = score(
                [self._tables.images[key] for key in keys],
                query.text or "",
                embedding=embedding,
                now=self._tables.clock().timestamp(),
                as_of=None if query.as_of is None else query.as_of.timestamp(),
                include_invalid=query.include_invalid,
                kinds=set(map(str, query.memory_types or MemoryType)),
                min_trust=0 if query.min_trust is None else query.min_trust.rank,
                limit=limit,
                weights=self._tables.ranking,
            )
            return self._hydrated(query.owner, keys, found)

    @staticmethod
    def _message_key(owner: MemoryOwner, messages: str, session_id: str | None) -> tuple[str, ...]:
        user = owner_user(owner)
        if messages == "off" or user is None or (messages == "session" and session_id is None):
            return ()
        return (message_audience(owner.tenant_id, user),)

    def _spoken(self, owner: MemoryOwner) -> list[tuple[Conversation, MessageRow]]:
        """The messages of the owner's user, in all sessions."""
        mine = (owner.tenant_id, owner_user(owner))
        return [
            (conversation, row)
            for key, conversation in self._tables.conversations.items()
            if key[:2] == mine
            for row in conversation.messages.values()
        ]

    def _excluded(self, owner: MemoryOwner, message_ids: Sequence[str]) -> set[int]:
        wanted = frozenset(message_ids)
        return {
            row.order
            for conversation, row in (self._spoken(owner) if wanted else ())
            if row.message.message_id in wanted
            and owner.session_id in (None, conversation.identity.session_id)
        }

    def _hydrated(
        self,
        owner: MemoryOwner,
        keys: Sequence[str],
        found: Sequence[Scored],
        *,
        session_only: bool = False,
    ) -> tuple[Candidate, ...]:
        wanted = {hit.key for hit in found}
        rows = {row.order: row.memory for row in self._tables.visible(keys) if row.order in wanted}
        for conversation, row in self._spoken(owner):
            if row.order not in wanted:
                continue
            identity = conversation.identity
            rows[row.order] = recalled_message(
                identity.tenant_id,
                identity.user_id,
                message=row.message,
                session_id=identity.session_id,
                session_only=session_only,
            )
        return tuple(Candidate(rows[hit.key], hit.relevance, hit.lanes) for hit in found)


def _answers(memory: Memory, query: MemoryQuery, now: datetime) -> bool:
    valid = query.include_invalid or memory.is_valid_at(query.as_of or now)
    wanted = not query.memory_types or memory.memory_type in query.memory_types
    trusted = query.min_trust is None or memory.trust >= query.min_trust
    return valid and wanted and trusted and not memory.is_expired_at(now)
