"""Memories by visibility in SQLite: repository, index, candidates and facts over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from muniment.domain.memory import Memory
from muniment.domain.query import MemoryQuery
from muniment.ports import Candidate, StoredFact
from muniment.stores.asks import Ask
from muniment.stores.embedding import Embedded
from muniment.stores.limits import within_tokens
from muniment.stores.memory_face import Memories
from muniment.stores.memory_rows import written
from muniment.stores.rows import memory_of, micros
from muniment.stores.sqlite.asks import excluded_seqs, hydrate
from muniment.stores.sqlite.calls import Job
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.images import audiences_of, json_list
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.writes import remove_memory, touch, write_fact, write_memory


class SQLiteMemories(Memories):
    """The memory face of a SQLite store; see `muniment.stores.memory_face.Memories`."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, core.embedder)
        self._core = core

    def listed(self, query: MemoryQuery) -> Job[tuple[Memory, ...]]:
        """`search` without a text as a job, which another read may include."""
        if query.text is not None:
            raise ValueError("text: what is listed is not searched for")
        values, count = _listing(self._asked(query)), self._core.limits.count
        return lambda db: within_tokens(
            _memories(db, "list_memories", values), query.max_tokens, count
        )

    async def _save(self, key: str, memory: Memory, vector: bytes | None) -> Memory:
        row = written(memory, self._core.limits.count)

        def job(change: Change) -> Memory:
            admitted = self._core.admit_one(change.db, vector)
            return write_memory(change, key, memory, row, vector=admitted)

        return await self._core.change(job)

    async def _of_id(self, ask: Ask, memory_id: str) -> Sequence[Memory]:
        values = (memory_id, json_list(ask.keys), micros(ask.now))
        return await self._core.engine.read_async(lambda db: _memories(db, "get_memory", values))

    async def _listed(self, ask: Ask) -> Sequence[Memory]:
        values = _listing(ask)
        return await self._core.engine.read_async(lambda db: _memories(db, "list_memories", values))

    async def _paged(self, ask: Ask, after: tuple[datetime, str] | None) -> Sequence[Memory]:
        place = (None, None) if after is None else (micros(after[0]), after[1])
        values = {**_listing(ask), "after": place[0], "after_id": place[1]}
        return await self._core.engine.read_async(lambda db: _memories(db, "page_memories", values))

    async def _found(self, ask: Ask) -> tuple[Candidate, ...]:
        core = self._core

        def job(db: apsw.Connection) -> tuple[Candidate, ...]:
            held = audiences_of(db, ask.all_keys)
            skipped = excluded_seqs(db, ask)
            embedding = core.comparable(db, ask.embedding)
            with core.images.current(db, held) as corpora:
                found = ask.scored(
                    corpora, embedding=embedding, skipped=skipped, weights=core.ranking
                )
            return hydrate(db, ask, [audience.key for audience in held], found)

        return await core.engine.read_async(job)

    async def _remove(self, ask: Ask, memory_id: str) -> bool:
        def job(change: Change) -> bool:
            db, values = change.db, (memory_id, json_list(ask.keys), micros(change.now))
            places = {row[0]: row[1] for row in db.execute(SQL["memory_place"], values)}
            held = [each.id for each in audiences_of(db, ask.keys) if each.id in places]
            if not held:
                return False
            # The order is narrow to wide, and sorting keeps it among those that have not expired.
            place = min(held, key=lambda audience: places[audience])
            remove_memory(change, place, memory_id)
            return True

        return await self._core.change(job, may_wait=True)

    async def _embed(self, key: str, memory: Memory, vector: Embedded) -> None:
        def job(change: Change) -> None:
            admitted = self._core.admit_embedded(change.db, vector)
            if admitted is not None:
                audience, changed = touch(change.db, key)
                values = (audience, memory.memory_id, admitted, changed)
                change.db.execute(SQL["set_vector"], values)

        await self._core.change(job)

    async def _store_fact(
        self, key: str, memory: Memory, vector: Embedded, supersedes: str | None
    ) -> StoredFact:
        def job(change: Change) -> StoredFact:
            admitted = self._core.admit_embedded(change.db, vector)
            return write_fact(change, key, memory, supersedes=supersedes, vector=admitted)

        return await self._core.change(job)


def _listing(ask: Ask) -> dict[str, Any]:
    types = ask.narrowed_types
    return {
        **ask.instants,
        "keys": json_list(ask.keys),
        "types": None if types is None else json_list(types),
        "trust": ask.trust,
        "limit": ask.limit,
    }


def _memories(db: apsw.Connection, statement: str, values: Any) -> tuple[Memory, ...]:
    return tuple(map(memory_of, db.execute(SQL[statement], values)))
