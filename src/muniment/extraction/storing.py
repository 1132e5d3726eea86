"""Writing a fact once, whatever the repository offers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory
from muniment.domain.query import MemoryQuery
from muniment.errors import MemoryStoreError, NotFoundError, QuotaExceededError
from muniment.ports import FactStore, MemoryIndex, MemoryRepository, StoredFact

INDEX_PENDING = "index_pending"
_SMALLEST = timedelta(microseconds=1)
_log = logging.getLogger(__name__)


class FactWriter:
    """Facts that exist once; the closing of the one that a fact replaces goes with its writing.

    A repository that is a `FactStore` does both in one transaction. Any other gets the best that
    separate calls can give: two writers at once may both store a fact there.
    """

    def __init__(
        self,
        memories: MemoryRepository,
        *,
        index: MemoryIndex | None = None,
        timeout_seconds: float = 10.0,
    ) -> None:
        self._memories = memories
        self._timeout = timeout_seconds
        # The same object as repository and index writes both in one transaction.
        self._index = None if id(index) == id(memories) else index

    async def write(
        self,
        memory: Memory,
        *,
        supersedes: Memory | None = None,
        embedding: Sequence[float] | None = None,
    ) -> StoredFact:
        """Store `memory`, or answer the same fact where it is live already."""
        async with asyncio.timeout(self._timeout):
            stored = await self._write(memory, supersedes, embedding)
        return await self._indexed(stored, embedding)

    async def repair(self, memory: Memory, embedding: Sequence[float] | None = None) -> None:
        """Index `memory` where its earlier indexing failed."""
        await self._indexed(StoredFact(memory, created=False), embedding)

    async def _write(
        self, memory: Memory, supersedes: Memory | None, embedding: Sequence[float] | None
    ) -> StoredFact:
        store = self._memories
        if not isinstance(store, FactStore):
            return await self._write_apart(memory, supersedes)
        closed = supersedes.memory_id if supersedes else None
        try:
            return await store.store_fact(memory, supersedes=closed, embedding=embedding)
        except MemoryStoreError as error:
            if embedding is None or isinstance(error, QuotaExceededError | NotFoundError):
                raise
            # An embedder that turned to another dimension, say, must not cost the fact.
            return await store.store_fact(memory, supersedes=closed)

    async def _write_apart(self, memory: Memory, supersedes: Memory | None) -> StoredFact:
        same = await self._live_twin(memory)
        if same is not None:
            return StoredFact(same, created=False)
        saved = await self._memories.save(memory)
        if supersedes is None:
            return StoredFact(saved, created=True)
        await self._memories.save(closed_by(supersedes, saved))
        return StoredFact(saved, created=True, superseded=supersedes.memory_id)

    async def _live_twin(self, memory: Memory) -> Memory | None:
        wanted = content_hash(memory.content, memory.scope)
        query = MemoryQuery(memory.owner, (memory.scope,), text=memory.content, limit=1000)
        rows = await self._memories.search(query)
        same = (row for row in rows if content_hash(row.content, row.scope) == wanted)
        return next(same, None)

    async def _indexed(self, stored: StoredFact, embedding: Sequence[float] | None) -> StoredFact:
        """Index a new fact, or one whose earlier indexing failed; a failure marks the row."""
        pending = bool(stored.memory.metadata.get(INDEX_PENDING))
        if self._index is None or not (stored.created or pending):
            return stored
        try:
            async with asyncio.timeout(self._timeout):
                await self._index.index_memory(stored.memory, embedding)
        except Exception as error:
            failed = {"memory_id": stored.memory.memory_id, "error": type(error).__name__}
            _log.warning("a fact is stored but not indexed yet", extra=failed)
            return stored if pending else await self._marked(stored, pending=True)
        return await self._marked(stored, pending=False) if pending else stored

    async def _marked(self, stored: StoredFact, *, pending: bool) -> StoredFact:
        saved = await self._memories.save(marked_pending(stored.memory, pending=pending))
        return replace(stored, memory=saved)


def closed_by(prior: Memory, successor: Memory) -> Memory:
    """`prior` with its validity ended where the successor's begins; its content stays."""
    instant = successor.valid_from or successor.created_at
    begun = prior.valid_from
    if begun is not None and begun >= instant:
        begun = instant - _SMALLEST
    return replace(
        prior,
        valid_from=begun,
        invalid_at=instant,
        superseded_by=successor.memory_id,
        updated_at=max(prior.updated_at, instant),
    )


def marked_pending(memory: Memory, *, pending: bool) -> Memory:
    """`memory` with the mark of a failed index write set or cleared."""
    metadata = {key: value for key, value in memory.metadata.items() if key != INDEX_PENDING}
    return replace(memory, metadata={**metadata, INDEX_PENDING: True} if pending else metadata)
