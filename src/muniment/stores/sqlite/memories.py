"""Memories by visibility: repository, index, candidates and facts over the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import apsw

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryMatch, MemoryQuery, Reach
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audiences
from muniment.evidence.score import score
from muniment.ports import Candidate, StoredFact
from muniment.stores.limits import checked_memory, within_tokens
from muniment.stores.rows import askable, memory_of, micros
from muniment.stores.sqlite.asks import Ask, excluded_seqs, hydrate
from muniment.stores.sqlite.calls import Job
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.images import audiences_of, json_list
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.writes import (
    remove_memory,
    touch,
    write_fact,
    write_memory,
    written,
)

_LEAST_COMPARED = 100


class SQLiteMemories:
    """The memory face of a SQLite store. Raises MemoryStoreError and InvalidEntryError."""

    takes_reach = True

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- repository ------------------------------------------------------------------------

    async def save(self, memory: Memory) -> Memory:
        """Store or update the row of this id in the memory's own audience."""
        key, stored = checked_memory(memory, self._core.limits.max_text_bytes)
        made = await self._core.embedder.one(stored.content)
        row = written(stored, self._core.limits.count)

        def job(change: Change) -> Memory:
            vector = self._core.admit_one(change.db, made)
            return write_memory(change, key, stored, row, vector=vector)

        return await self._core.change(job)

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        """The memory of this id, narrowest scope first; None where there is none for `caller`."""
        keys, now = audiences(caller), micros(self._core.clock())

        def job(db: apsw.Connection) -> Memory | None:
            rows = list(db.execute(SQL["get_memory"], (askable(memory_id), json_list(keys), now)))
            found = sorted(map(memory_of, rows), key=lambda memory: memory.scope.width)
            return found[0] if found else None

        return await self._core.engine.read_async(job)

    async def search(self, query: MemoryQuery) -> tuple[Memory, ...]:
        """With text: best first. Without: the most recently changed first."""
        if query.text is not None:
            hits = await self._ranked(query, None)
            return self._within((hit.memory for hit in hits), query)
        return await self._core.engine.read_async(self.listed(query))

    def listed(self, query: MemoryQuery) -> Job[tuple[Memory, ...]]:
        """`search` without a text as a job, which another read may include."""
        if query.text is not None:
            raise ValueError("text: what is listed is not searched for")
        values = self._listing(query)
        return lambda db: self._within(_listed(db, "list_memories", values), query)

    async def page(
        self, query: MemoryQuery, *, after: tuple[datetime, str] | None = None
    ) -> tuple[Memory, ...]:
        """The newest by creation that follow the place `after`."""
        place = (None, None) if after is None else (micros(after[0]), after[1])
        values = {**self._listing(query), "after": place[0], "after_id": place[1]}
        return await self._core.engine.read_async(lambda db: _listed(db, "page_memories", values))

    def _listing(self, query: MemoryQuery) -> dict[str, Any]:
        return {
            **self._instants(query.as_of, query.include_invalid),
            "keys": json_list(audiences(query.owner, query.scopes)),
            "types": json_list(query.memory_types) if query.memory_types else None,
            "trust": trust_floor(query.min_trust),
            "limit": query.limit,
        }

    def _within(self, found: Iterable[Memory], query: MemoryQuery) -> tuple[Memory, ...]:
        return within_tokens(found, query.max_tokens, self._core.limits.count)

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        """Delete what `get` answers, or an expired row; what it had replaced is current again."""
        keys = audiences(caller)

        def job(change: Change) -> bool:
            db, values = change.db, (askable(memory_id), json_list(keys), micros(change.now))
            places = {row[0]: row[1] for row in db.execute(SQL["memory_place"], values)}
            held = [each.id for each in audiences_of(db, keys) if each.id in places]
            if not held:
                return False
            # The order is narrow to wide, and sorting keeps it among those that have not expired.
            place = min(held, key=lambda audience: places[audience])
            remove_memory(change, place, memory_id)
            return True

        return await self._core.change(job, may_wait=True)

    # -- index -----------------------------------------------------------------------------

    async def index_memory(self, memory: Memory, embedding: Sequence[float] | None = None) -> None:
        """Give a saved memory its embedding, made here where none is given.

        Its words are indexed when it is saved.
        """
        key, stored = checked_memory(memory, self._core.limits.max_text_bytes)
        made = await self._core.embedder.one(stored.content) if embedding is None else None

        def job(change: Change) -> None:
            vector = self._vector(change.db, made, embedding)
            if vector is not None:
                audience, changed = touch(change.db, key)
                values = (audience, stored.memory_id, vector, changed)
                change.db.execute(SQL["set_vector"], values)

        await self._core.change(job)

    def _vector(
        self, db: apsw.Connection, made: bytes | None, given: Sequence[float] | None
    ) -> bytes | None:
        return (
            self._core.admit(db, [made])[0] if given is None else self._core.admit_given(db, given)
        )

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
        core = self._core

        def job(db: apsw.Connection) -> tuple[Candidate, ...]:
            held = audiences_of(db, ask.all_keys)
            skip = excluded_seqs(db, ask)
            with core.images.current(db, held) as corpora:
                found = score(
                    corpora,
                    text,
                    embedding=core.comparable(db, embedding),
                    now=ask.instants["now"] / 1e6,
                    as_of=None if as_of is None else as_of.timestamp(),
                    include_invalid=include_invalid,
                    kinds=ask.scored_kinds,
                    session=ask.session,
                    exclude_keys=skip,
                    min_trust=ask.trust,
                    limit=limit,
                    reach=reach,
                    weights=core.ranking,
                )
            return hydrate(db, ask, [audience.key for audience in held], found)

        return await self._core.engine.read_async(job)

    def _instants(self, as_of: datetime | None, any_time: bool) -> dict[str, Any]:
        now = micros(self._core.clock())
        return {
            "now": now,
            "at": now if as_of is None else micros(as_of),
            "any_time": any_time,
        }

    def note_served(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        """Count one search that gave out these; written with the next write."""
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

        def job(change: Change) -> StoredFact:
            vector = self._vector(change.db, made, embedding)
            return write_fact(change, key, stored, supersedes=supersedes, vector=vector)

        return await self._core.change(job)


def trust_floor(trust: Trust | None) -> int:
    """The rank that a row needs; 0 where there is no floor."""
    return 0 if trust is None else Trust(trust).rank


def _listed(db: apsw.Connection, statement: str, values: dict[str, Any]) -> tuple[Memory, ...]:
    return tuple(map(memory_of, db.execute(SQL[statement], values)))
