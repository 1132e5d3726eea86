"""The pool: what each connection is opened with, and what the server must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection, errors
from psycopg_pool import AsyncConnectionPool

from muniment.errors import MemoryStoreError
from muniment.stores.postgres.errors import explained
from muniment.stores.postgres.vectors import register

Connection = AsyncConnection[tuple[Any, ...]]
Pool = AsyncConnectionPool[Connection]

ROLE = "muniment_app"
SCHEMA = "muniment"
_OLDEST_SERVER = 160000
_OLDEST_PGVECTOR = (0, 8)

_OPTIONS: dict[str, Any] = {
    "autocommit": True,  # transactions are opened by hand, with their settings in one message
    "prepare_threshold": None,  # a transaction-mode pooler may change the server connection
    "connect_timeout": 5,
    "keepalives_idle": 5,  # a peer that vanished is noticed within half a minute,
    "keepalives_interval": 5,  # also by a connection that only waits
    "keepalives_count": 4,
    "tcp_user_timeout": 15_000,
    "application_name": "muniment",
}


@dataclass(frozen=True, slots=True)
class Server:
    """What a database offers: versions, the vector type, and the schema of that extension."""

    version: int
    pgvector: str
    halfvec: int
    vector_schema: str


def make_pool(url: str, *, size: int, wait_seconds: float, prepared: Prepared) -> Pool:
    """A pool that is not open yet; `size` is the most connections that it holds."""
    return AsyncConnectionPool(
        url,
        kwargs=_OPTIONS,
        min_size=1,
        max_size=size,
        timeout=wait_seconds,
        configure=prepared,
        open=False,
        name="muniment",
        num_workers=2,
    )


class Prepared:
    """Teaches each new connection the vector type; remembers the server from the first one."""

    def __init__(self) -> None:
        self.server: Server | None = None

    async def __call__(self, connection: Connection) -> None:
        if self.server is None:
            self.server = await examined(connection)
        register(connection, self.server.halfvec)


async def connect(url: str) -> Connection:
    """A connection of its own; MemoryStoreError where there is none to be had."""
    try:
        return await AsyncConnection.connect(url, **_OPTIONS)
    except psycopg.Error as error:
        raise explained(error) from None


async def examined(connection: Connection) -> Server:
    """The server, checked; MemoryStoreError where it is too old or lacks pgvector."""
    version = connection.info.server_version
    if version < _OLDEST_SERVER:
        raise MemoryStoreError(f"PostgreSQL {version // 10000} is too old: 16 or newer is needed")
    cursor = await connection.execute(
        b"SELECT e.extversion, t.oid::bigint, n.nspname FROM pg_extension e"
        b" JOIN pg_namespace n ON n.oid = e.extnamespace"
        b" LEFT JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = 'halfvec'"
        b" WHERE e.extname = 'vector'"
    )
    row = await cursor.fetchone()
    if row is None:
        raise MemoryStoreError("the database lacks the extension pgvector: run `muniment migrate`")
    parts = tuple(int(part) for part in row[0].split(".")[:2])
    if parts < _OLDEST_PGVECTOR or row[1] is None:
        raise MemoryStoreError(
            f"pgvector {row[0]} is too old: 0.8 or newer is needed (ALTER EXTENSION vector UPDATE)"
        )
    return Server(version, row[0], row[1], row[2])


async def require_role(connection: Connection) -> None:
    """MemoryStoreError unless the connection may act as the role that row security binds."""
    cursor = await connection.execute(
        b"SELECT rolsuper OR rolbypassrls, pg_has_role(current_user, oid, 'SET'),"
        b" EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid"
        b" AND c.relnamespace = to_regnamespace('muniment'))"
        b" FROM pg_roles r WHERE rolname = 'muniment_app'"
    )
    row = await cursor.fetchone()
    if row is None:
        raise MemoryStoreError(f"the role {ROLE} is missing: run `muniment migrate`")
    bypasses, may_set, owns = row
    if bypasses or owns:
        raise MemoryStoreError(
            f"the role {ROLE} would not be bound by row-level security: it must neither be a "
            "superuser, nor have BYPASSRLS, nor own the tables"
        )
    if not may_set:
        raise MemoryStoreError(
            f"this login may not act as {ROLE}: GRANT {ROLE} TO it (see docs/postgres.md)"
        )


async def schema_seen_by_role(connection: Connection) -> tuple[int, int] | None:
    """`recorded_schema` as the role sees it, whatever the login inherits."""
    async with connection.transaction():
        await connection.execute(b"SET LOCAL ROLE muniment_app")
        return await recorded_schema(connection)


async def recorded_schema(connection: Connection) -> tuple[int, int] | None:
    """The schema's version and the oldest one whose code still works on it; None without one."""
    try:
        cursor = await connection.execute(
            b"SELECT name, value::integer FROM muniment.setting"
            b" WHERE name IN ('schema_version', 'oldest_code') ORDER BY name"
        )
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return None
    held: dict[str, int] = dict(await cursor.fetchall())
    return (held["schema_version"], held["oldest_code"]) if held else None
