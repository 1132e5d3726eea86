"""The PostgreSQL store: one object, its faces, and the verbs by realm."""

from __future__ import annotations

from collections.abc import Callable

from muniment.domain import checks
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope, realm_key
from muniment.domain.visibility import audiences
from muniment.ports import MemoryEmbedder
from muniment.stores.erasure import ErasureResult
from muniment.stores.postgres import realms
from muniment.stores.postgres.conversations import PostgresConversations
from muniment.stores.postgres.core import Clock, Core
from muniment.stores.postgres.images import DEFAULT_BUDGET_BYTES
from muniment.stores.postgres.memories import PostgresMemories
from muniment.stores.postgres.migrate import schema_version
from muniment.stores.postgres.reindexing import reindex
from muniment.stores.postgres.service import PostgresService
from muniment.stores.postgres.working import PostgresWorkingMemory
from muniment.stores.rows import micros

_MOST_CONNECTIONS = 1_000


class PostgresStore:
    """Conversations, memories and working state in a PostgreSQL database with pgvector.

    `memories`, `conversations`, `working` and `service` implement the ports; the store's own
    methods take a realm (or an owner). Use it in one event loop, as an async context manager, or
    `open` and `aclose` it; the first call opens it otherwise. The schema comes from
    `muniment migrate`. `connections` is the most that the pool holds (1 to 1000),
    `timeout_seconds` bounds every call (0.1 to 3600), `image_bytes` what is kept in memory for
    searching. Raises MemoryStoreError where the database cannot be used.
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
        )
        self.memories = PostgresMemories(self._core)
        self.conversations = PostgresConversations(self._core)
        self.working = PostgresWorkingMemory(self._core)
        self.service = PostgresService(self._core)

    async def open(self, *, reindexing: bool = False) -> PostgresStore:
        """Check the server and its schema; answers the store itself.

        `reindexing` lets a database in whose vectors are of another model: call `reindex` next.
        """
        self._core.reindexing = reindexing
        await self._core.open()
        return self

    async def __aenter__(self) -> PostgresStore:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._core.close()

    async def history(self, place: Scope | MemoryOwner, memory_id: str) -> tuple[Memory, ...]:
        """The chain of supersessions that the memory is part of, oldest first.

        An owner asks by visibility, a Scope by coverage; empty where neither finds it.
        """
        if isinstance(place, MemoryOwner):
            find = realms.by_visibility(audiences(place), micros(self._core.clock()))
            tenant = place.tenant_id
        else:
            realm = realm_key(place)
            find, tenant = realms.by_coverage(realm), realm.tenant
        return await self._core.read(tenant, lambda session: realms.chain(session, find, memory_id))

    async def count(self, place: Scope | MemoryOwner) -> int:
        """How many memories the realm covers, expired ones until they are swept."""
        realm = realm_key(place)
        return await self._core.read(realm.tenant, lambda session: realms.count(session, realm))

    async def erase(self, place: Scope | MemoryOwner) -> ErasureResult:
        """Remove everything that the realm covers; see docs/postgres.md for its bytes."""
        realm = realm_key(place)
        result = await self._core.change(realm.tenant, lambda change: realms.erased(change, realm))
        self._core.images.drop()
        return result

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
        if server is not None:
            found["postgres"] = f"{server.version // 10000}.{server.version % 10000}"
            found["pgvector"] = server.pgvector
        return found
