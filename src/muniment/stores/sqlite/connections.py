"""Opening connections to a file: each setting with the reason why."""

from __future__ import annotations

import contextlib
import os
import time

import apsw

from muniment.stores.sqlite.encryption import Encryption, require_not_plain

BUSY_MILLISECONDS = 60_000
IN_MEMORY = ":memory:"
SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA")
_STATEMENTS_KEPT = 200
_RETRY_SECONDS = 0.01

_SETTINGS = (
    "PRAGMA foreign_keys = ON",  # a message without its conversation cannot exist
    "PRAGMA secure_delete = ON",  # what is deleted is overwritten, not just unlinked
    "PRAGMA temp_store = MEMORY",  # sorting leaves no text in a temporary file
    "PRAGMA cache_size = -16384",  # 16 MiB of pages a connection, whatever the page size
    "PRAGMA trusted_schema = OFF",  # a tampered file's views and triggers call nothing
)


def connect(
    path: str,
    *,
    synchronous: str = "FULL",
    encryption: Encryption | None = None,
    create: bool = True,
) -> apsw.Connection:
    """A connection with every setting applied. FULL: an acknowledged write survives a power cut."""
    if path != IN_MEMORY:
        if encryption is not None:
            require_not_plain(path)
        if create:
            _create_private(path)
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = apsw.Connection(path, flags=flags, statementcachesize=_STATEMENTS_KEPT)
    try:
        if encryption is not None:
            encryption.unlock(connection)  # before anything is read
        connection.set_busy_timeout(BUSY_MILLISECONDS)  # before the first statement may wait
        # A kept statement with a bound LIMIT would be planned anew whenever that is bound again.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for setting in (*_SETTINGS, f"PRAGMA synchronous = {synchronous}"):
            connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection


def is_open(connection: apsw.Connection) -> bool:
    """Whether the connection was not closed yet."""
    try:
        connection.get_autocommit()
    except apsw.ConnectionClosedError:
        return False
    return True


def use_write_ahead_log(connection: apsw.Connection) -> None:
    """Let readers and the writer not wait for each other; the file remembers it.

    SQLite does not wait for a lock here, so that two processes that open a new file at once
    need this to be tried again.
    """
    until = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(_RETRY_SECONDS)


def _create_private(path: str) -> None:
    # SQLite gives the journals the mode of the file, so the file's is set before they exist.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if os.path.isfile(path) and os.path.getsize(path) == 0:  # an empty file becomes a database
        os.chmod(path, 0o600)
