"""The in-process store, one object with a face for each port."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Self

from muniment.domain.clock import Clock, clock_of
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key, realm_of
from muniment.domain.visibility import audiences
from muniment.evidence.weights import DEFAULT_NAME
from muniment.governance import events
from muniment.governance.audit import AuditLog, audit_log
from muniment.governance.audit_verification import VerifyResult
from muniment.governance.quotas import Totals
from muniment.governance.tokens import TokenEstimator
from muniment.governance.usage import Served
from muniment.ports import MemoryEmbedder
from muniment.stores.embedding import RowEmbedder
from muniment.stores.erasure import ErasureResult
from muniment.stores.exchanges import ComposedExchanges
from muniment.stores.in_memory import realms
from muniment.stores.in_memory.conversations import MAX_SESSIONS, InMemoryConversations
from muniment.stores.in_memory.entries import InMemoryEntries
from muniment.stores.in_memory.memories import InMemoryMemories
from muniment.stores.in_memory.service import InMemoryService
from muniment.stores.in_memory.tables import Conversation, MemoryRow, Tables
from muniment.stores.in_memory.trail import Trail
from muniment.stores.in_memory.working import InMemoryWorking
from muniment.stores.limits import MAX_RESULTS, MAX_TEXT_BYTES, Limits
from muniment.stores.recalled import is_searchable
from muniment.stores.store_face import Store
from muniment.stores.supersession import chronological


class InMemoryStore(Store):
    """Everything in this process, gone with it. Safe for several threads.

    `memories`, `conversations`, `working` and `service` are its ports; `clock` gives aware times.
    With `audit`, a log or its path, every write of memories and conversations is in that log
    once it is acknowledged; AuditError where it cannot be.
    A text has at most `max_text_bytes` (1 to 1 MiB). Quotas are a tenant's: how many memories,
    and how many tokens of them by `token_estimator` (one for 3 bytes by default); None is none.
    A tenant has at most `max_sessions` sessions: one more evicts its own longest unused one.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        embedder: MemoryEmbedder | None = None,
        audit: AuditLog | str | PathLike[str] | None = None,
        max_text_bytes: int = MAX_TEXT_BYTES,
        max_results: int = MAX_RESULTS,
        quota_entries: int | None = None,
        quota_tokens: int | None = None,
        token_estimator: TokenEstimator | None = None,
        ranking: str = DEFAULT_NAME,
        max_sessions: int = MAX_SESSIONS,
    ) -> None:
        limits = Limits.of(
            max_text_bytes=max_text_bytes,
            max_results=max_results,
            quota_entries=quota_entries,
            quota_tokens=quota_tokens,
            token_estimator=token_estimator,
        )
        log = audit_log(audit)
        self._trail = None if log is None else Trail(log)
        self._tables = Tables(clock_of(clock), limits, self._trail, ranking=ranking)
        super().__init__(self._tables)
        self._embedder = RowEmbedder(embedder)
        self.memories = InMemoryMemories(self._tables, self._embedder)
        self.conversations = InMemoryConversations(
            self._tables, self._embedder, max_sessions=max_sessions
        )
        self.working = InMemoryWorking(self._tables)
        self.entries = InMemoryEntries(self._tables, self._embedder)
        self.service = InMemoryService(self._tables)
        self.exchanges = ComposedExchanges(self.conversations, self.service)

    async def open(self, *, reindexing: bool = False) -> Self:  # noqa: ARG002 - as every store
        """Ready as it is: there is nothing to open."""
        return self

    async def aclose(self) -> None:
        """Nothing is held outside this object."""

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

    async def _count(self, realm: RealmKey) -> int:
        with self._tables.lock:
            return len(realms.covered(self._tables, realm))

    async def _foresee(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        with self._tables.lock:
            return realms.foreseen(self._tables, realm, cascade=cascade)

    async def _erase(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        async with self._tables.change(may_wait=True) as change:
            erased = realms.erase(self._tables, change, realm, cascade=cascade)
            record_id = change.record(events.REALM_ERASED, realm, **erased.record)
            if realm == RealmKey(realm.tenant):
                self._tables.served.forget(realm.tenant)
        return erased.received(record_id or events.new_record_id())

    async def _sweep(self, realm: RealmKey) -> int:
        async with self._tables.change(may_wait=True) as change:
            gone = realms.sweep(self._tables, realm)
            change.record_ids(events.MEMORIES_SWEPT, realm, gone)
        return len(gone)

    async def compact(self) -> None:
        """Nothing to do: what is removed leaves nothing behind."""

    async def _used(self, realm: RealmKey, day: str) -> tuple[Totals, Served]:
        with self._tables.lock:
            rows = realms.covered(self._tables, realm)
        stored = Totals(len(rows), sum(row.tokens for row in rows))
        return stored, self._tables.served.of(realm.tenant, day)

    async def reindex(
        self,
        realm: Scope | MemoryOwner | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Embed anew what the realm covers, everything by default; how many rows there are."""
        key = None if realm is None else realm_key(realm)
        with self._tables.lock:
            rows = [r for r in self._tables.memories.values() if _within(key, realm_of(r.memory))]
            spoken = [c for c in self._tables.conversations.values() if _within(key, c.realm)]
        vectors = await self._embedder.many([row.memory.content for row in rows])
        with self._tables.lock:
            for row, vector in zip(rows, vectors, strict=True):
                if self._tables.memories.get((row.audience, row.memory.memory_id)) is row:
                    self._tables.put(row.audience, row.memory, row.digest, vector or row.vector)
        done = len(rows) + sum([await self._reindex_messages(each) for each in spoken])
        if progress is not None:
            progress(done)
        return done

    async def verify_audit(self, *, receipt: str | None = None) -> VerifyResult | None:
        """What the audit log holds, followed whole; None without a log. Never raises for its state.

        It must hold every record of this store; with an erasure's `receipt`, that of the erasure.
        """
        return None if self._trail is None else await self._trail.verify(receipt)

    async def describe(self) -> dict[str, str]:
        """What the store is made of, for a doctor."""
        return {"store": "memory", "ranking": self._tables.ranking_name}

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
        return realms.covered(self._tables, realm_key(whose))


def _within(realm: RealmKey | None, place: RealmKey) -> bool:
    return realm is None or realm.covers(place)
