"""Bringing a file to this version's schema: numbered scripts, all in one transaction."""

from __future__ import annotations

import re
from importlib import resources

import apsw

from muniment.errors import MemoryStoreError

_APPLICATION = 0x4D756E69  # "Muni"
_NAME = re.compile(r"(\d{4})_\w+\.sql")


def migrations() -> dict[int, str]:
    """The scripts by number, from 1 without a gap."""
    folder = resources.files("muniment.stores.sqlite") / "sql" / "migrations"
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return dict(sorted((int(name[1]), path.read_text("utf-8")) for name, path in found if name))


def schema_version() -> int:
    """The newest schema that this version knows."""
    return max(migrations())


def migrate(connection: apsw.Connection) -> None:
    """Bring the file to the newest schema; MemoryStoreError where that cannot be."""
    if "ENABLE_FTS5" not in connection.execute("PRAGMA compile_options").get:
        raise MemoryStoreError("this SQLite was built without FTS5; install the package `apsw`")
    if _held(connection) == schema_version():
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        held = _held(connection)
        for number, script in migrations().items():
            if number > held:
                connection.execute(script)
        connection.execute(f"PRAGMA user_version = {schema_version()}")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _held(connection: apsw.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").get)
    application = int(connection.execute("PRAGMA application_id").get)
    if version > schema_version():
        raise MemoryStoreError(
            f"the file has schema {version} and this version knows {schema_version()}: "
            "install a newer muniment"
        )
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").get)
    if (version and application != _APPLICATION) or (not version and tables):
        raise MemoryStoreError("the file is another application's database; it was left as it is")
    return version
