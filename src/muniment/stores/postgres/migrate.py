"""Bringing a database to this version's schema: numbered scripts, all in one transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

import psycopg
from psycopg import sql

from muniment.domain import checks
from muniment.errors import MemoryStoreError
from muniment.stores.postgres import connections
from muniment.stores.postgres.connections import ROLE, SCHEMA, Connection
from muniment.stores.postgres.errors import explained

_NAME = re.compile(r"(\d{4})_\w+\.sql")
_OLDEST_CODE = re.compile(r"^-- oldest code: (\d+)$", re.MULTILINE)
_LOCK = 0x4D756E69  # "Muni"
_TABLE = re.compile(r"CREATE TABLE (\w+)")
_MOST_PARTITIONS = 1_024


def migrations() -> dict[int, str]:
    """The scripts by number, from 1 without a gap."""
    folder = resources.files("muniment.stores.postgres") / "sql" / "migrations"
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return dict(sorted((int(name[1]), path.read_text("utf-8")) for name, path in found if name))


def schema_version() -> int:
    """The newest schema that this version knows."""
    return max(migrations())


def require_known_schema(recorded: tuple[int, int] | None) -> None:
    """MemoryStoreError unless this version can work on a database of that schema.

    A newer schema is fine while it names a version no newer than ours as the oldest code.
    """
    version, oldest = recorded or (0, 0)
    ours = schema_version()
    if version < ours:
        raise MemoryStoreError(
            f"the database has schema {version} and this version needs {ours}: "
            "run `muniment migrate`"
        )
    if oldest > ours:
        raise MemoryStoreError(
            f"the database has schema {version} and this version knows {ours}: "
            "install a newer muniment"
        )


async def migrate(
    url: str, *, partitions: int = 0, scripts: Mapping[int, str] | None = None
) -> tuple[int, int]:
    """Bring the database to the newest of `scripts` (this version's own by default).

    The login must own the database or be a superuser. `partitions` (0 to 1024) divides the
    tables by a hash of the tenant when they are made; it has no effect later. Answers the
    version before (0 for none) and after. MemoryStoreError where it cannot be done; the database
    is then as it was.
    """
    checks.whole("partitions", partitions, low=0, high=_MOST_PARTITIONS)
    connection = await connections.connect(url)
    try:
        async with connection.transaction():
            return await _migrated(connection, partitions, scripts or migrations())
    except psycopg.Error as error:
        raise explained(error) from None
    finally:
        await connection.close()


async def _migrated(
    connection: Connection, partitions: int, steps: Mapping[int, str]
) -> tuple[int, int]:
    await connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    await _prepare(connection)
    held = await _held(connection)
    if held > max(steps):
        raise MemoryStoreError(
            f"the database has schema {held} and this version knows {max(steps)}: "
            "install a newer muniment"
        )
    if held:
        partitions = await _partitions(connection)
    for number in sorted(steps):
        if number > held:
            await _step(connection, steps[number], partitions)
    if connection.info.server_version >= _LETS_OTHERS_VACUUM:
        await connection.execute(_LET_ROLE_VACUUM)
    await _record(connection, steps, held, partitions)
    return held, max(steps)


async def _prepare(connection: Connection) -> None:
    """The extension, the schema and the role that row-level security binds."""
    await connection.execute(b"CREATE EXTENSION IF NOT EXISTS vector")
    server = await connections.examined(connection)
    await connection.execute(
        sql.SQL("CREATE SCHEMA IF NOT EXISTS {0}").format(sql.Identifier(SCHEMA))
    )
    cursor = await connection.execute(b"SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,))
    if await cursor.fetchone() is None:
        await connection.execute(_MAKE_ROLE)
    await connection.execute(_LET_ROLE_IN)
    path = f"{SCHEMA}, {server.vector_schema}"
    await connection.execute(b"SELECT set_config('search_path', %s, true)", (path,))


# Roles are the whole server's: another database may be migrated at the same time.
_MAKE_ROLE = b"""
DO $$ BEGIN
    CREATE ROLE muniment_app NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""
_LETS_OTHERS_VACUUM = 170000
_LET_ROLE_VACUUM = b"GRANT MAINTAIN ON ALL TABLES IN SCHEMA muniment TO muniment_app"
_LET_ROLE_IN = b"GRANT USAGE ON SCHEMA muniment TO muniment_app"


async def _held(connection: Connection) -> int:
    cursor = await connection.execute(b"SELECT to_regclass('muniment.setting') IS NOT NULL")
    row = await cursor.fetchone()
    if row is None or not row[0]:
        return 0
    recorded = await connections.recorded_schema(connection)
    return 0 if recorded is None else recorded[0]


async def _partitions(connection: Connection) -> int:
    """Into how many parts the tables were divided when they were made."""
    query = b"SELECT value::integer FROM setting WHERE name = 'partitions'"
    row = await (await connection.execute(query)).fetchone()
    return 0 if row is None else int(row[0])


async def _step(connection: Connection, script: str, partitions: int) -> None:
    divided = "PARTITION BY HASH (tenant_id)" if partitions else ""
    await connection.execute(script.replace("{partitioned}", divided).encode())
    if partitions:
        parts = script.split("{partitioned}")[:-1]
        for table in (_TABLE.findall(part)[-1] for part in parts):
            for number in range(partitions):
                await _add_partition(connection, table, number, partitions)


async def _add_partition(connection: Connection, table: str, number: int, of: int) -> None:
    name = f"{table}_p{number}"
    await connection.execute(
        sql.SQL(
            "CREATE TABLE {name} PARTITION OF {table}"
            " FOR VALUES WITH (MODULUS {of}, REMAINDER {number});"
            " ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"
        ).format(
            name=sql.Identifier(name),
            table=sql.Identifier(table),
            of=sql.Literal(of),
            number=sql.Literal(number),
        )
    )


async def _record(
    connection: Connection, steps: Mapping[int, str], held: int, partitions: int
) -> None:
    """Note the schema's version, the oldest code that still works on it, and how it is divided."""
    needed = [int(found[1]) for step in steps.values() if (found := _OLDEST_CODE.search(step))]
    if held == max(steps):
        return
    noted = {
        "schema_version": max(steps),
        "oldest_code": max(needed, default=1),
        "partitions": partitions,
    }
    for name, value in noted.items():
        await connection.execute(
            b"INSERT INTO setting (name, value) VALUES (%s, %s)"
            b" ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value",
            (name, str(value)),
        )
