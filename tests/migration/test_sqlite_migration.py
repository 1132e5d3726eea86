"""Schemas: an older file is brought forward in one transaction, a newer one is refused."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from muniment.domain.realm import Scope
from muniment.errors import MemoryStoreError
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.stores.sqlite.migrate import migrate, migrations, schema_version


def _version(connection: apsw.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").get)


def test_the_scripts_are_numbered_without_a_gap() -> None:
    assert list(migrations()) == list(range(1, schema_version() + 1))


def test_an_older_file_is_brought_forward_with_its_rows() -> None:
    connection = apsw.Connection(":memory:")
    steps = {**migrations(), schema_version() + 1: "ALTER TABLE setting ADD COLUMN note TEXT;"}
    migrate(connection)
    connection.execute("INSERT INTO setting (name, value) VALUES ('kept', 'yes')")
    migrate(connection, steps)
    assert _version(connection) == schema_version() + 1
    assert connection.execute("SELECT value, note FROM setting WHERE name = 'kept'").fetchall() == [
        ("yes", None)
    ]


_ROW = """
INSERT INTO memory (audience, memory_id, changed, scope, memory_type, tenant, user, content,
    metadata, importance, created_at, updated_at, source_message_ids, derived_from, entity_ids,
    digest, trust, terms, marks, length)
VALUES (1, ?, 0, ?, 'fact', 'acme', ?, 'four', '{}', 0.5, 1, 1, '[]', ?, '[]', '', 0, x'', 0, 1)
"""


async def test_what_was_derived_before_the_links_were_kept_falls_with_its_source(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    connection = apsw.Connection(str(path))
    migrate(connection, {1: migrations()[1]})
    connection.execute('INSERT INTO audience (key) VALUES (\'["tenant", "acme"]\')')
    for row in (
        ("m1", "tenant", "ana", "[]"),
        ("d1", "tenant", "bo", '["m1"]'),
        ("p1", "user", "ana", "[]"),
        ("d2", "tenant", "bo", '["p1", "gone"]'),
    ):
        connection.execute(_ROW, row)
    connection.close()
    async with AsyncSQLiteStore(path) as store:
        usage = await store.usage(Scope("acme"))
        assert (usage.entries, usage.stored_tokens) == (4, 8)
        result = await store.erase(Scope("acme", subject="ana"))
        assert (result.entries, result.derived) == (2, 1)
        assert await store.count(Scope("acme")) == 1


def test_a_step_that_fails_leaves_the_file_as_it_was() -> None:
    connection = apsw.Connection(":memory:")
    migrate(connection)
    newest = schema_version()
    steps = {
        **migrations(),
        newest + 1: "ALTER TABLE setting ADD COLUMN note TEXT;",
        newest + 2: "INSERT INTO nowhere VALUES (1);",
    }
    with pytest.raises(apsw.SQLError):
        migrate(connection, steps)
    assert _version(connection) == newest
    columns = [row[1] for row in connection.execute("PRAGMA table_info(setting)")]
    assert columns == ["name", "value"]


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await (store := AsyncSQLiteStore(path)).open()
    await store.aclose()
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {schema_version() + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(MemoryStoreError, match="newer muniment"):
        await AsyncSQLiteStore(path).open()
    assert path.read_bytes() == before


async def test_another_applications_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(MemoryStoreError, match="another application"):
        await AsyncSQLiteStore(path).open()
    assert path.read_bytes() == before
