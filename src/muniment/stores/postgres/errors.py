"""PostgreSQL's errors in our words, and which of them a new attempt may cure."""

from __future__ import annotations

import psycopg
from psycopg import errors as pg
from psycopg_pool import PoolTimeout

from muniment.errors import MemoryStoreError

UNDONE = (pg.SerializationFailure, pg.DeadlockDetected)
"""The server rolled the transaction back: it may be run again as it is."""

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (PoolTimeout, "PostgreSQL cannot be reached, or every connection is in use"),
    (pg.QueryCanceled, "PostgreSQL did not answer in time; nothing was changed"),
    (pg.LockNotAvailable, "a row stayed locked by another transaction; nothing was changed"),
    (pg.DiskFull, "PostgreSQL's disk is full; nothing was changed"),
    (pg.ReadOnlySqlTransaction, "PostgreSQL is read-only here (a standby?); nothing was changed"),
    (pg.UndefinedTable, "the schema is missing: run `muniment migrate`"),
    (pg.InsufficientPrivilege, "the database role lacks a right: see docs/postgres.md"),
    (pg.InvalidPassword, "PostgreSQL refused the credentials"),
    (psycopg.OperationalError, "the connection to PostgreSQL failed"),
)


def is_lost(error: BaseException, connection: psycopg.AsyncConnection[object] | None) -> bool:
    """Whether the connection is gone, so that nothing more can be learned through it."""
    gone = connection is None or connection.closed or connection.broken
    return gone and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def explained(error: BaseException) -> MemoryStoreError:
    """What is wrong and what to do: never a statement or a value."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return MemoryStoreError(reason)
    return MemoryStoreError(f"PostgreSQL reports {type(error).__name__}; nothing was changed")
