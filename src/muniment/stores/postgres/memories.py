"""Memories by visibility: repository, index, candidates and facts over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryMatch, MemoryQuery, Reach
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audiences
from muniment.evidence.corpus import Corpus
from muniment.evidence.score import Scored, score
from muniment.ports import Candidate, StoredFact
from muniment.stores.limits import checked_memory, within_tokens
from muniment.stores.postgres.asks import Ask, hydrate, standing
from muniment.stores.postgres.audiences import seen, touch
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.core import Core, comparable
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.vectors import Halfvec
from muniment.stores.postgres.writes import remove_memory, write_fact, write_memory
from muniment.stores.rows import askable, memory_of, micros

_LEAST_COMPARED = 100


class PostgresMemories:
    """The memory face of a PostgreSQL store. Raises MemoryStoreError and InvalidEntryError."""

    takes_reach = True

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- repository ------------------------------------------------------------------------

    async def save(self, memory: Memory) -> Memory:
        """Store or update the row of this id in the memory's own audience."""
        key, stored = checked_memory(memory, self._core.limits.max_text_bytes)
        made = await self._core.embedder.one(stored.content)

        async def job(change: Change) -> Memory:
            (vector,) = await self._core.admit(change.db, [made])
            return await write_memory(change, key, stored, vector=vector)

        return await self._core.change(stored.owner.tenant_id, job)

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        """The memory of this id, narrowest scope first; None where there is none for `caller`."""
        values = {
            **seen(audiences(caller)),
            "memory_id": askable(memory_id),
            "now": micros(self._core.clock()),
        }

        async def job(session: Session) -> Memory | None:
            found = [memory_of(row) for row in await session.all("get_memory", values)]
            return min(found, key=lambda memory: _nearness(memory, caller), default=None)

        return await self._core.read(caller.tenant_id, job)

    async def search(self, query: MemoryQuery) -> tuple[Memory, ...]:
        """With text: best first. Without: the most recently changed first."""
        if query.text is not None:
            hits = await self._ranked(query, None)
            return self._within(tuple(hit.memory for hit in hits), query)
        found = await self._listed("list_memories", query, {})
        return self._within(found, query)

    def _within(self, found: tuple[Memory, ...], query: MemoryQuery) -> tuple[Memory, ...]:
        return within_tokens(found, query.max_tokens, self._core.limits.count)

    async def page(
        self, query: MemoryQuery, *, after: tuple[datetime, str] | None = None
    ) -> tuple[Memory, ...]:
        """The newest by creation that follow the place `after` (a created_at and an id)."""
        created, memory_id = (None, "") if after is None else (micros(after[0]), after[1])
        place = {"created": created, "id": askable(memory_id)}
        return await self._listed("page_memories", query, place)

    async def _listed(
        self, statement: str, query: MemoryQuery, place: dict[str, Any]
    ) -> tuple[Memory, ...]:
        values = {
            **place,
            **self._instants(query.as_of, query.include_invalid),
            **seen(audiences(query.owner, query.scopes)),
            "types": [kind.value for kind in query.memory_types] or None,
            "trust": trust_floor(query.min_trust),
            "limit": query.limit,
        }

        async def job(session: Session) -> tuple[Memory, ...]:
            return tuple(memory_of(row) for row in await session.all(statement, values))

        return await self._core.read(query.owner.tenant_id, job)

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        """Delete what `get` answers, or an expired row; what it had replaced is current again.

        A GLOBAL memory is deleted from its writer's tenant only.
        """
        keys, now = audiences(caller), micros(self._core.clock())
        values = {**seen(keys), "memory_id": askable(memory_id), "now": now}

        async def job(change: Change) -> bool:
            places = await change.db.all("memory_place", values)
            if not places:
                return False
            # Narrow to wide, those that have expired last.
            audience = min(places, key=lambda row: (row[2], keys.index(row[1])))[0]
            await remove_memory(change, audience, memory_id)
            return True

        return await self._core.change(caller.tenant_id, job, may_wait=True)

    # -- index -----------------------------------------------------------------------------

    async def index_memory(self, memory: Memory, embedding: Sequence[float] | None = None) -> None:
        """Give a saved memory its embedding, made here where none is given.

        Its words are indexed when it is saved.
        """
        key, stored = checked_memory(memory, self._core.limits.max_text_bytes)
        made = await self._core.embedder.one(stored.content) if embedding is None else None

        async def job(session: Session) -> None:
            vector = await self._vector(session, made, embedding)
            if vector is not None:
                audience, changed = await touch(session, key)
                place = {"audience": audience, "memory_id": stored.memory_id}
                await session.run("set_vector", {**place, "vector": vector, "changed": changed})

        await self._core.write(stored.owner.tenant_id, job)

    async def _vector(
        self, session: Session, made: bytes | None, given: Sequence[float] | None
    ) -> Halfvec | None:
        if given is not None:
            return await self._core.admit_given(session, given)
        return (await self._core.admit(session, [made]))[0]

    async def search_memories(
        self, query: MemoryQuery, embedding: Sequence[float] | None = None
    ) -> tuple[MemoryMatch, ...]:
        """By cosine similarity where there is an embedding, else by relevance in words."""
        hits = await self._ranked(query, embedding)
        if embedding is None:
            return tuple(MemoryMatch(hit.memory.memory_id, hit.relevance) for hit in hits)
        near = [MemoryMatch(hit.memory.memory_id, hit.lanes.get("cosine", 0.0)) for hit in hits]
        near.sort(key=lambda match: (-match.score, match.memory_id))
        return tuple(near[: query.limit])

    async def delete_memory(self, owner: MemoryOwner, memory_id: str) -> None:
        """Nothing to do: a row and its index are one."""

    async def _ranked(
        self, query: MemoryQuery, embedding: Sequence[float] | None
    ) -> tuple[Candidate, ...]:
        if query.text is None and embedding is None:
            return ()
        # With an embedding the answer goes by meaning alone, so no word is asked for.
        return await self.candidates(
            query.owner,
            query.text if query.text is not None and embedding is None else "",
            embedding=embedding,
            scopes=query.scopes or tuple(MemoryScope),
            memory_types=query.memory_types or tuple(MemoryType),
            as_of=query.as_of,
            min_trust=query.min_trust,
            limit=query.limit if embedding is None else max(query.limit, _LEAST_COMPARED),
            include_invalid=query.include_invalid,
        )

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
        include_invalid: bool = False,
    ) -> tuple[Candidate, ...]:
        """Recall's candidates in one read; best first."""
        ask = Ask(
            owner=owner,
            keys=audiences(owner, scopes) if scopes else (),
            kinds=frozenset(kind.value for kind in memory_types),
            messages=messages,
            session=session_id if messages == "session" else None,
            excluded=tuple(exclude_message_ids),
            trust=trust_floor(min_trust),
            instants=self._instants(as_of, include_invalid),
        )

        async def job(session: Session) -> tuple[Candidate, ...]:
            start = await standing(session, ask)
            near = comparable(embedding, start.width)

            def scored(corpora: list[Corpus]) -> Sequence[Scored]:
                return score(
                    corpora,
                    text,
                    embedding=near,
                    now=ask.instants["now"] / 1e6,
                    as_of=None if as_of is None else as_of.timestamp(),
                    include_invalid=include_invalid,
                    kinds=ask.scored_kinds,
                    session=ask.session,
                    exclude_keys=start.skipped,
                    min_trust=ask.trust,
                    limit=limit,
                    reach=reach,
                    weights=self._core.ranking,
                )

            found = await self._core.images.scored(session, start.held, scored)
            return await hydrate(session, ask, start.held, found)

        return await self._core.read(owner.tenant_id, job)

    def _instants(self, as_of: datetime | None, any_time: bool) -> dict[str, Any]:
        now = micros(self._core.clock())
        return {
            "now": now,
            "at": now if as_of is None else micros(as_of),
            "any_time": any_time,
        }

    def note_served(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        """Count one search that gave out these; written at `usage` and on closing."""
        tokens = sum(self._core.limits.count(memory.content) for memory in memories)
        self._core.served.note(tenant_id, len(memories), tokens)

    # -- facts -----------------------------------------------------------------------------

    async def store_fact(
        self,
        memory: Memory,
        *,
        supersedes: str | None = None,
        embedding: Sequence[float] | None = None,
    ) -> StoredFact:
        """A fact that exists once in its audience; see `muniment.ports.FactStore`."""
        key, stored = checked_memory(memory, self._core.limits.max_text_bytes)
        made = await self._core.embedder.one(stored.content) if embedding is None else None

        async def job(change: Change) -> StoredFact:
            vector = await self._vector(change.db, made, embedding)
            return await write_fact(change, key, stored, supersedes=supersedes, vector=vector)

        return await self._core.change(stored.owner.tenant_id, job)


def trust_floor(trust: Trust | None) -> int:
    """The rank that a row needs; 0 where there is no floor."""
    return 0 if trust is None else Trust(trust).rank


def _nearness(memory: Memory, caller: MemoryOwner) -> tuple[int, bool]:
    """Narrow scopes first; of GLOBAL rows with one id, the caller's own tenant's."""
    return memory.scope.width, memory.owner.tenant_id != caller.tenant_id
