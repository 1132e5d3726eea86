"""The PostgreSQL store: one object, its faces, and the verbs by realm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from muniment.domain import checks
from muniment.domain.clock import Clock
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.domain.visibility import audiences
from muniment.evidence.weights import DEFAULT_NAME
from muniment.governance.audit import VerifyResult
from muniment.governance.quotas import Totals
from muniment.governance.tokens import TokenEstimator
from muniment.governance.usage import Served
from muniment.ports import MemoryEmbedder
from muniment.stores.erasure import ErasureResult
from muniment.stores.exchanges import ComposedExchanges
from muniment.stores.limits import MAX_RESULTS, MAX_TEXT_BYTES, Limits
from muniment.stores.postgres import realms
from muniment.stores.postgres.audit import verify
from muniment.stores.postgres.compacting import vacuum
from muniment.stores.postgres.conversations import PostgresConversations
from muniment.stores.postgres.core import Core
from muniment.stores.postgres.entries import PostgresEntries
from muniment.stores.postgres.erasing import erase_realm, sweep
from muniment.stores.postgres.images import DEFAULT_BUDGET_BYTES
from muniment.stores.postgres.memories import PostgresMemories
from muniment.stores.postgres.migrate import schema_version
from muniment.stores.postgres.reindexing import reindex
from muniment.stores.postgres.service import PostgresService
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.totals import served_on
from muniment.stores.postgres.working import PostgresWorkingMemory
from muniment.stores.rows import micros
from muniment.stores.store_face import Store

_MOST_CONNECTIONS = 1_000


class PostgresStore(Store):
    """Conversations, memories and working state in a PostgreSQL database with pgvector.

    `memories`, `conversations`, `working` and `service` implement the ports; `entries` and the
    store's own methods take a realm (or an owner). Use it in one event loop, as an async context
    manager, or `open` and `aclose` it; the first call opens it otherwise. The schema comes from
    `muniment migrate`. `connections` is the most that the pool holds (1 to 1000),
    `timeout_seconds` bounds every call (0.1 to 3600), `image_bytes` what is kept in memory for
    searching, `max_text_bytes` (1 to 1 MiB) a text, `max_results` (1 to 1000) the hits of a
    search by realm. Quotas are a tenant's: how many memories, and how many tokens of them by
    `token_estimator` (one for 3 bytes by default); None is no quota.
    With `audit`, every write of memories and conversations is recorded in the table `audit`, in
    its own transaction. Raises MemoryStoreError where the database cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        embedder: MemoryEmbedder | None = None,
        embedder_name: str | None = None,
        connections: int = 10,
        timeout_seconds: float = 10.0,
        image_bytes: int = DEFAULT_BUDGET_BYTES,
        max_text_bytes: int = MAX_TEXT_BYTES,
        max_results: int = MAX_RESULTS,
        quota_entries: int | None = None,
        quota_tokens: int | None = None,
        token_estimator: TokenEstimator | None = None,
        ranking: str = DEFAULT_NAME,
        audit: bool = False,
    ) -> None:
        self._core = Core(
            url,
            clock=clock,
            embedder=embedder,
            embedder_name=embedder_name,
            connections_most=checks.whole(
                "connections", connections, low=1, high=_MOST_CONNECTIONS
            ),
            timeout_seconds=checks.finite("timeout_seconds", timeout_seconds, low=0.1, high=3600),
            image_bytes=image_bytes,
            audited=audit,
            ranking=ranking,
            limits=Limits.of(
                max_text_bytes=max_text_bytes,
                max_results=max_results,
                quota_entries=quota_entries,
                quota_tokens=quota_tokens,
                token_estimator=token_estimator,
            ),
        )
        super().__init__(self._core)
        self.memories = PostgresMemories(self._core)
        self.conversations = PostgresConversations(self._core)
        self.working = PostgresWorkingMemory(self._core)
        self.entries = PostgresEntries(self._core)
        self.service = PostgresService(self._core)
        self.exchanges = ComposedExchanges(self.conversations, self.service)

    async def open(self, *, reindexing: bool = False) -> Self:
        """Check the server and its schema; answers the store itself.

        `reindexing` lets a database in whose vectors are of another model: call `reindex` next.
        """
        self._core.reindexing = reindexing
        await self._core.open()
        return self

    async def aclose(self) -> None:
        """Close every connection."""
        try:
            await self._core.store_served()
        finally:
            await self._core.close()

    async def history(self, place: Scope | MemoryOwner, memory_id: str) -> tuple[Memory, ...]:
        """The chain of supersessions that the memory is part of, oldest first.

        An owner asks by visibility, a Scope by coverage; empty where neither finds it.
        """
        if isinstance(place, MemoryOwner):
            sight = realms.by_visibility(audiences(place), micros(self._core.clock()))
            tenant = place.tenant_id
        else:
            realm = realm_key(place)
            sight, tenant = realms.by_coverage(realm), realm.tenant
        return await self._core.read(tenant, lambda db: realms.chain(db, sight, memory_id))

    async def _count(self, realm: RealmKey) -> int:
        return await self._core.read(realm.tenant, lambda session: realms.count(session, realm))

    async def _foresee(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        would = await self._core.rehearse(
            realm.tenant, lambda change: erase_realm(change, realm, cascade=cascade)
        )
        return would.result

    async def _erase(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        removed = await self._core.change(
            realm.tenant, lambda change: erase_realm(change, realm, cascade=cascade), may_wait=True
        )
        self._core.images.forget(realm.tenant, removed.audiences)
        if realm == RealmKey(realm.tenant):
            self._core.served.forget(realm.tenant)
        return removed.result

    async def _sweep(self, realm: RealmKey) -> int:
        count, audiences = await self._core.change(
            realm.tenant, lambda change: sweep(change, realm), may_wait=True
        )
        if count:
            self._core.images.forget(realm.tenant, audiences)
        return count

    async def compact(self, *, rewrite: bool = False) -> None:
        """Vacuum the tables, so that no row of what was erased is left in them.

        Bytes may stay in the free space of their pages until that is used; `rewrite` writes each
        table anew and locks it meanwhile, so that they are gone from the tables' files.
        docs/postgres.md says what the write-ahead log holds on to. MemoryStoreError where the
        login may not.
        """
        await self._core.open()
        await vacuum(self._core.url, rewrite=rewrite)

    async def verify_audit(self, *, receipt: str | None = None) -> VerifyResult | None:
        """What the audit log holds, every tenant's chain followed whole; None without a log.

        Never raises for its state. With an erasure's `receipt`, it must hold the record of that
        erasure; ValueError for a malformed one.
        """
        return await verify(self._core.read, receipt) if self._core.audited else None

    async def _used(self, realm: RealmKey, day: str) -> tuple[Totals, Served]:
        await self._core.store_served(realm.tenant)

        async def job(db: Session) -> tuple[Totals, Served]:
            return await realms.stored(db, realm), await served_on(db, day)

        return await self._core.read(realm.tenant, job)

    async def reindex(
        self,
        place: Scope | MemoryOwner | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Rebuild words and embeddings in batches, of everything by default; counts the rows.

        `progress` gets the number done.
        """
        return await reindex(self._core, None if place is None else realm_key(place), progress)

    async def describe(self) -> dict[str, str]:
        """What the store is made of, for a doctor: versions, never names or contents."""
        await self._core.open()
        server = self._core.server
        found = {"store": "postgres", "schema": str(schema_version())}
        found["ranking"] = self._core.ranking_name
        if server is not None:
            found["postgres"] = f"{server.version // 10000}.{server.version % 10000}"
            found["pgvector"] = server.pgvector
        return found
