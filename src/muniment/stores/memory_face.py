"""What every store offers by visibility: who may see what is decided here, rows are the store's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryMatch, MemoryQuery, Reach
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audiences
from muniment.ports import Candidate, StoredFact
from muniment.stores.asks import Ask, trust_floor, types_of
from muniment.stores.common import Common
from muniment.stores.embedding import Embedded, RowEmbedder, in_words_at_least
from muniment.stores.limits import checked_memory, within_tokens
from muniment.stores.rows import askable


class Memories(ABC):
    """The memory face: MemoryRepository, MemoryIndex, MemoryCandidates, MemoryPages, FactStore.

    Every question reaches a store as an `Ask`, which holds the audiences of whoever asks it.
    MemoryScopeError for an owner that cannot address the memory's scope, InvalidEntryError for
    what breaks a rule, MemoryStoreError where the store cannot be used.
    """

    takes_reach = True

    def __init__(self, common: Common, embedder: RowEmbedder) -> None:
        self._common = common
        self._embedder = embedder

    # -- repository ------------------------------------------------------------------------

    async def save(self, memory: Memory) -> Memory:
        """Store or update the row of this id in the memory's own audience."""
        key, stored = self._checked(memory)
        return await self._save(key, stored, await self._embedder.one(stored.content))

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        """The memory of this id, narrowest scope first; None where there is none for `caller`."""
        ask = Ask.of_caller(caller, self._common.clock())
        found = await self._of_id(ask, askable(memory_id))
        return min(found, key=lambda memory: _nearness(memory, caller), default=None)

    async def search(self, query: MemoryQuery) -> tuple[Memory, ...]:
        """With text: best first. Without: the most recently changed first."""
        found: Sequence[Memory]
        if query.text is None:
            found = await self._listed(self._asked(query))
        else:
            found = [hit.memory for hit in await self._found(self._asked(query))]
        return within_tokens(found, query.max_tokens, self._common.limits.count)

    async def page(
        self, query: MemoryQuery, *, after: tuple[datetime, str] | None = None
    ) -> tuple[Memory, ...]:
        """The newest by creation that follow the place `after` (a created_at and an id)."""
        place = None if after is None else (after[0], askable(after[1]))
        return tuple(await self._paged(self._asked(query), place))

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        """Delete what `get` answers, or an expired row; what it had replaced is current again.

        A GLOBAL memory is deleted from its writer's tenant only, where tenants are kept apart.
        """
        ask = Ask.of_caller(caller, self._common.clock())
        return await self._remove(ask, askable(memory_id))

    # -- index -----------------------------------------------------------------------------

    async def index_memory(self, memory: Memory, embedding: Sequence[float] | None = None) -> None:
        """Give a saved memory its embedding, made here where none is given.

        Its words are indexed when it is saved.
        """
        key, stored = self._checked(memory)
        await self._embed(key, stored, await self._embedder.for_text(stored.content, embedding))

    async def search_memories(
        self, query: MemoryQuery, embedding: Sequence[float] | None = None
    ) -> tuple[MemoryMatch, ...]:
        """By cosine similarity where there is an embedding, else by relevance in words."""
        if query.text is None and embedding is None:
            return ()
        hits = await self._found(self._asked(query, embedding))
        if embedding is None:
            return tuple(MemoryMatch(hit.memory.memory_id, hit.relevance) for hit in hits)
        near = [MemoryMatch(hit.memory.memory_id, hit.lanes["cosine"]) for hit in hits]
        near.sort(key=lambda match: (-match.score, match.memory_id))
        return tuple(near[: query.limit])

    async def delete_memory(self, owner: MemoryOwner, memory_id: str) -> None:  # noqa: B027
        """Nothing to do: a row and its index are one."""

    # -- candidates ------------------------------------------------------------------------

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
        """Recall's candidates in one read, best first; empty `scopes` or types match nothing."""
        ask = Ask(
            owner=owner,
            keys=audiences(owner, scopes) if scopes else (),
            types=types_of(memory_types),
            now=self._common.clock(),
            as_of=as_of,
            trust=trust_floor(min_trust),
            limit=limit,
            text=text,
            messages=messages,
            session=session_id if messages == "session" else None,
            excluded=tuple(exclude_message_ids),
            reach=reach,
        )
        return await in_words_at_least(
            lambda given: self._found(replace(ask, embedding=given)), embedding
        )

    def note_served(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        """Count one search that gave out these; a database writes it later."""
        tokens = sum(self._common.limits.count(memory.content) for memory in memories)
        self._common.served.note(tenant_id, len(memories), tokens)

    # -- facts -----------------------------------------------------------------------------

    async def store_fact(
        self,
        memory: Memory,
        *,
        supersedes: str | None = None,
        embedding: Sequence[float] | None = None,
    ) -> StoredFact:
        """A fact that exists once in its audience; see `muniment.ports.FactStore`."""
        key, stored = self._checked(memory)
        vector = await self._embedder.for_text(stored.content, embedding)
        return await self._store_fact(key, stored, vector, supersedes)

    def _checked(self, memory: Memory) -> tuple[str, Memory]:
        return checked_memory(memory, self._common.limits.max_text_bytes)

    def _asked(self, query: MemoryQuery, embedding: Sequence[float] | None = None) -> Ask:
        return Ask.of_query(query, self._common.clock(), embedding)

    # -- what a store does with its rows -----------------------------------------------------

    @abstractmethod
    async def _save(self, key: str, memory: Memory, vector: bytes | None) -> Memory:
        """Store or update the row of this id in the audience `key`."""

    @abstractmethod
    async def _of_id(self, ask: Ask, memory_id: str) -> Sequence[Memory]:
        """The rows of this id in the audiences asked that have not expired."""

    @abstractmethod
    async def _listed(self, ask: Ask) -> Sequence[Memory]:
        """The memories that may be found, those last changed first."""

    @abstractmethod
    async def _paged(self, ask: Ask, after: tuple[datetime, str] | None) -> Sequence[Memory]:
        """The memories that may be found, by creation, after this time and id."""

    @abstractmethod
    async def _found(self, ask: Ask) -> tuple[Candidate, ...]:
        """What the ranking finds, read back; who may see it is asked again."""

    @abstractmethod
    async def _remove(self, ask: Ask, memory_id: str) -> bool:
        """Delete the row of this id in the first audience asked that has it, one that has expired
        last; whether there was one.
        """

    @abstractmethod
    async def _embed(self, key: str, memory: Memory, vector: Embedded) -> None:
        """Give the row of this id in the audience `key` a vector; an unknown row is passed over."""

    @abstractmethod
    async def _store_fact(
        self, key: str, memory: Memory, vector: Embedded, supersedes: str | None
    ) -> StoredFact:
        """Store a fact once in the audience `key`, in one change."""


def _nearness(memory: Memory, caller: MemoryOwner) -> tuple[int, bool]:
    """Narrow scopes first; of GLOBAL rows with one id, the caller's own tenant's."""
    return memory.scope.width, memory.owner.tenant_id != caller.tenant_id
