"""Memories by visibility in PostgreSQL: repository, index, candidates and facts over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from muniment.domain.memory import Memory
from muniment.ports import Candidate, StoredFact
from muniment.stores.asks import Ask
from muniment.stores.embedding import Embedded, comparable
from muniment.stores.memory_face import Memories
from muniment.stores.postgres.asks import hydrate, standing
from muniment.stores.postgres.audiences import seen, touch
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.core import Core
from muniment.stores.postgres.removals import Place, remove_memories
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.writes import write_fact, write_memory
from muniment.stores.rows import memory_of, micros


class PostgresMemories(Memories):
    """The memory face of a PostgreSQL store; see `muniment.stores.memory_face.Memories`."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, core.embedder)
        self._core = core

    async def _save(self, key: str, memory: Memory, vector: bytes | None) -> Memory:
        async def job(change: Change) -> Memory:
            (admitted,) = await self._core.admit(change.db, [vector])
            return await write_memory(change, key, memory, vector=admitted)

        return await self._core.change(memory.owner.tenant_id, job)

    async def _of_id(self, ask: Ask, memory_id: str) -> Sequence[Memory]:
        return await self._memories(ask, "get_memory", _of_id(ask, memory_id))

    async def _listed(self, ask: Ask) -> Sequence[Memory]:
        return await self._memories(ask, "list_memories", _listing(ask))

    async def _paged(self, ask: Ask, after: tuple[datetime, str] | None) -> Sequence[Memory]:
        created, memory_id = (None, "") if after is None else (micros(after[0]), after[1])
        values = {**_listing(ask), "created": created, "id": memory_id}
        return await self._memories(ask, "page_memories", values)

    async def _memories(self, ask: Ask, statement: str, values: dict[str, Any]) -> Sequence[Memory]:
        tenant = ask.owner.tenant_id
        rows = await self._core.read(tenant, lambda session: session.all(statement, values))
        return [memory_of(row) for row in rows]

    async def _found(self, ask: Ask) -> tuple[Candidate, ...]:
        core = self._core

        async def job(session: Session) -> tuple[Candidate, ...]:
            start = await standing(session, ask)
            scored = partial(
                ask.scored,
                embedding=comparable(ask.embedding, start.width),
                skipped=start.skipped,
                weights=core.ranking,
            )
            found = await core.images.scored(session, start.held, scored)
            return await hydrate(session, ask, start.held, found)

        return await core.read(ask.owner.tenant_id, job)

    async def _remove(self, ask: Ask, memory_id: str) -> bool:
        async def job(change: Change) -> bool:
            places = await change.db.all("memory_place", _of_id(ask, memory_id))
            if not places:
                return False
            # Narrow to wide, those that have expired last.
            audience = min(places, key=lambda row: (row[2], ask.keys.index(row[1])))[0]
            await remove_memories(change, [Place(audience, memory_id)])
            return True

        return await self._core.change(ask.owner.tenant_id, job, may_wait=True)

    async def _embed(self, key: str, memory: Memory, vector: Embedded) -> None:
        async def job(session: Session) -> None:
            admitted = await self._core.admit_embedded(session, vector)
            if admitted is not None:
                audience, changed = await touch(session, key)
                place = {"audience": audience, "memory_id": memory.memory_id}
                await session.run("set_vector", {**place, "vector": admitted, "changed": changed})

        await self._core.write(memory.owner.tenant_id, job)

    async def _store_fact(
        self, key: str, memory: Memory, vector: Embedded, supersedes: str | None
    ) -> StoredFact:
        async def job(change: Change) -> StoredFact:
            admitted = await self._core.admit_embedded(change.db, vector)
            return await write_fact(change, key, memory, supersedes=supersedes, vector=admitted)

        return await self._core.change(memory.owner.tenant_id, job)


def _of_id(ask: Ask, memory_id: str) -> dict[str, Any]:
    return {**seen(ask.keys), "memory_id": memory_id, "now": micros(ask.now)}


def _listing(ask: Ask) -> dict[str, Any]:
    return {
        **ask.instants,
        **seen(ask.keys),
        "types": ask.narrowed_types,
        "trust": ask.trust,
        "limit": ask.limit,
    }
