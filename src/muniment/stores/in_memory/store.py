"""The in-process store, one object with a face for each port."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from os import PathLike
from typing import Self

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key, realm_of
from muniment.domain.visibility import audiences
from muniment.governance import events
from muniment.governance.audit import AuditLog, audit_log
from muniment.ports import MemoryEmbedder
from muniment.stores.embedding import RowEmbedder
from muniment.stores.erasure import ErasureResult
from muniment.stores.in_memory.conversations import InMemoryConversations
from muniment.stores.in_memory.entries import InMemoryEntries
from muniment.stores.in_memory.memories import InMemoryMemories
from muniment.stores.in_memory.service import InMemoryService
from muniment.stores.in_memory.tables import Conversation, MemoryRow, Tables
from muniment.stores.in_memory.trail import Trail
from muniment.stores.in_memory.working import InMemoryWorking
from muniment.stores.recalled import is_searchable
from muniment.stores.supersession import chronological


class InMemoryStore:
    """Everything in this process, gone with it. Safe for several threads.

    `memories`, `conversations`, `working` and `service` are its ports; `clock` gives aware times.
    With `audit`, a log or its path, every write of memories and conversations is in that log
    once it is acknowledged; AuditError where it cannot be.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        embedder: MemoryEmbedder | None = None,
        audit: AuditLog | str | PathLike[str] | None = None,
    ) -> None:
        log = audit_log(audit)
        self._tables = Tables(clock or _now, None if log is None else Trail(log))
        self._embedder = RowEmbedder(embedder)
        self.memories = InMemoryMemories(self._tables, self._embedder)
        self.conversations = InMemoryConversations(self._tables, self._embedder)
        self.working = InMemoryWorking(self._tables)
        self.entries = InMemoryEntries(self._tables, self._embedder)
        self.service = InMemoryService(self._tables)

    async def open(self, *, reindexing: bool = False) -> Self:  # noqa: ARG002 - as every store
        """Ready as it is: there is nothing to open."""
        return self

    async def aclose(self) -> None:
        """Nothing is held outside this object."""

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def history(self, whose: MemoryOwner | Scope, memory_id: str) -> tuple[Memory, ...]:
        """The succession that a memory is part of, oldest first; () where it is not there.

        An owner asks by visibility (nothing expired), a realm by coverage.
        """
        with self._tables.lock:
            rows = self._selected(whose)
            start = next((row for row in rows if row.memory.memory_id == memory_id), None)
            if start is None:
                return ()
            beside = [row.memory for row in rows if row.audience == start.audience]
        return chronological(memory_id, beside)

    async def count(self, realm: Scope | MemoryOwner) -> int:
        """Memories that belong to the realm, expired ones included."""
        with self._tables.lock:
            return len(self._covered(realm_key(realm)))

    async def erase(self, realm: Scope | MemoryOwner) -> ErasureResult:
        """Remove everything that belongs to the realm."""
        key = realm_key(realm)
        async with self._tables.change(may_wait=True) as change:
            entries = self._covered(key)
            for row in entries:
                self._tables.remove(row)
            gone = [c for c in self._tables.conversations.values() if key.covers(c.realm)]
            messages = sum(map(self._tables.remove_conversation, gone))
            states = self._erase_working(key)
            counts = {"entries": len(entries), "sessions": len(gone), "messages": messages}
            change.record(events.REALM_ERASED, key, **counts, working_states=states)
            return ErasureResult(len(entries), len(gone), messages, states)

    async def reindex(
        self,
        realm: Scope | MemoryOwner | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Embed anew what the realm covers, everything by default; how many rows there are."""
        key = None if realm is None else realm_key(realm)
        with self._tables.lock:
            rows = list(self._tables.memories.values()) if key is None else self._covered(key)
            spoken = [
                each
                for each in self._tables.conversations.values()
                if key is None or key.covers(each.realm)
            ]
        vectors = await self._embedder.many([row.memory.content for row in rows])
        with self._tables.lock:
            for row, vector in zip(rows, vectors, strict=True):
                if self._tables.memories.get((row.audience, row.memory.memory_id)) is row:
                    self._tables.put(row.audience, row.memory, row.digest, vector or row.vector)
        done = len(rows) + sum([await self._reindex_messages(each) for each in spoken])
        if progress is not None:
            progress(done)
        return done

    async def describe(self) -> dict[str, str]:
        """What the store is made of, for a doctor."""
        return {"store": "memory"}

    async def _reindex_messages(self, conversation: Conversation) -> int:
        with self._tables.lock:
            held = list(conversation.messages.values())
        rows = [row for row in held if is_searchable(row.message)]
        await self.conversations.embed(conversation, rows)
        return len(rows)

    def _selected(self, whose: MemoryOwner | Scope) -> list[MemoryRow]:
        if isinstance(whose, MemoryOwner):
            now, keys = self._tables.clock(), audiences(whose)
            rows = [r for r in self._tables.visible(keys) if not r.memory.is_expired_at(now)]
            return sorted(rows, key=lambda row: row.memory.scope.width)
        return self._covered(realm_key(whose))

    def _covered(self, key: RealmKey) -> list[MemoryRow]:
        return [row for row in self._tables.memories.values() if key.covers(realm_of(row.memory))]

    def _erase_working(self, key: RealmKey) -> int:
        gone = [
            run
            for run in self._tables.working
            if key.covers(RealmKey(run.tenant, run.user, None, run.session))
        ]
        for run in gone:
            del self._tables.working[run]
        return len(gone)


def _now() -> datetime:
    return datetime.now(UTC)
