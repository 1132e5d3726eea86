"""Bringing a file to this version's schema: numbered scripts, all in one transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

import apsw

from muniment.errors import MemoryStoreError

APPLICATION = 0x4D756E69  # "Muni"
_NAME = re.compile(r"(\d{4})_\w+\.sql")


def migrations() -> dict[int, str]:
    """The scripts by number, from 1 without a gap."""
    folder = resources.files("muniment.stores.sqlite") / "sql" / "migrations"
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return dict(sorted((int(name[1]), path.read_text("utf-8")) for name, path in found if name))


def schema_version() -> int:
    """The newest schema that this version knows."""
    return max(migrations())


def migrate(connection: apsw.Connection, scripts: Mapping[int, str] | None = None) -> None:
    """Bring the file to the newest of `scripts` (this version's own by default).

    MemoryStoreError for a newer schema or another application's file, which is left as it is.
    """
    steps = migrations() if scripts is None else scripts
    require_ours(connection, max(steps))
    if _held(connection, max(steps)) == max(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        held = _held(connection, max(steps))  # again: another process may have been first
        for number in sorted(steps):
            if number > held:
                connection.execute(steps[number])
        connection.execute(f"PRAGMA user_version = {max(steps)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def require_ours(connection: apsw.Connection, newest: int | None = None) -> None:
    """MemoryStoreError where the file is not one that this version can work on."""
    _held(connection, schema_version() if newest is None else newest)


def _held(connection: apsw.Connection, newest: int) -> int:
    version = int(connection.execute("PRAGMA user_version").get)
    application = int(connection.execute("PRAGMA application_id").get)
    tables = int(connection.execute("SELECT count(*) FROM sqlite_schema").get)
    if (version and application != APPLICATION) or (not version and tables):
        raise MemoryStoreError("the file is another application's database; it was left as it is")
    if version > newest:
        raise MemoryStoreError(
            f"the file has schema {version} and this version knows {newest}: "
            "install a newer muniment"
        )
    return version
