"""Repositories of somebody else: the port alone, and the port with facts that exist once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from muniment import Memory, MemoryMatch, MemoryOwner, MemoryQuery, content_hash, visible_to
from muniment.extraction.storing import closed_by
from muniment.ports import StoredFact


class ForeignRepository:
    """Substring search over a dictionary, newest first."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.rows: dict[str, Memory] = {}
        self.fail_after: int | None = None

    async def save(self, memory: Memory) -> Memory:
        if self.fail_after is not None:
            if self.fail_after == 0:
                raise OSError("disk")
            self.fail_after -= 1
        self.rows[memory.memory_id] = memory
        return memory

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        row = self.rows.get(memory_id)
        return row if row is not None and visible_to(row.scope, row.owner, caller) else None

    async def search(self, query: MemoryQuery) -> Sequence[Memory]:
        found = [row for row in self.rows.values() if self._wanted(row, query)]
        return found[::-1][: query.limit]

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        return self.rows.pop(memory_id, None) is not None

    def _wanted(self, row: Memory, query: MemoryQuery) -> bool:
        return (
            visible_to(row.scope, row.owner, query.owner)
            and (not query.scopes or row.scope in query.scopes)
            and (not query.memory_types or row.memory_type in query.memory_types)
            and (query.text is None or query.text.casefold() in row.content.casefold())
            and row.is_valid_at(self.now)
        )

    @property
    def live(self) -> list[Memory]:
        return [row for row in self.rows.values() if row.is_valid_at(self.now)]


class FactRepository(ForeignRepository):
    """Adds the rule that a live fact exists once."""

    async def store_fact(
        self,
        memory: Memory,
        *,
        supersedes: str | None = None,
        embedding: Sequence[float] | None = None,
    ) -> StoredFact:
        for row in self.live:
            same = content_hash(row.content, row.scope) == memory.content_hash
            if same and visible_to(row.scope, row.owner, memory.owner):
                return StoredFact(row, created=False)
        prior = self.rows.get(supersedes or "")
        saved = await self.save(memory)
        if prior is None or prior.superseded_by is not None:
            return StoredFact(saved, created=True)
        self.rows[prior.memory_id] = closed_by(prior, saved)
        return StoredFact(saved, created=True, superseded=prior.memory_id)


class WordIndex:
    """Scores by given similarities: text pairs that are as good as the same."""

    def __init__(self, repository: ForeignRepository, similarity: float = 0.0) -> None:
        self._repository = repository
        self.similarity = similarity
        self.indexed: list[str] = []
        self.broken = False

    async def index_memory(self, memory: Memory, embedding: Sequence[float] | None = None) -> None:
        if self.broken:
            raise OSError("index")
        self.indexed.append(memory.memory_id)

    async def search_memories(
        self, query: MemoryQuery, embedding: Sequence[float] | None = None
    ) -> Sequence[MemoryMatch]:
        return [MemoryMatch(key, self.similarity) for key in self._repository.rows]

    async def delete_memory(self, owner: MemoryOwner, memory_id: str) -> None:
        self.indexed.remove(memory_id)
