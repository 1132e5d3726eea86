"""The write-ahead log after an erasure: emptied, or remembered in the file until it can be.

What was deleted is overwritten in the file when the log is written back, and stays in the log
until that is emptied; both wait for readers of an older snapshot, in other processes too.
"""

from __future__ import annotations

from uuid import uuid4

import apsw

from muniment.errors import MemoryStoreError
from muniment.stores.sqlite.connections import BUSY_MILLISECONDS
from muniment.stores.sqlite.statements import SQL

WAIT_MILLISECONDS = 1_000
_PENDING = "erasure_pending"


def promise(db: apsw.Connection) -> None:
    """Remember in the transaction of an erasure that its bytes are still to go."""
    # A value of its own: whoever empties the log clears only what was deleted before that.
    db.execute(SQL["record_setting"], (_PENDING, uuid4().hex))


def settle(db: apsw.Connection, *, wait: int = WAIT_MILLISECONDS) -> bool:
    """Empty the log, outside a transaction; False while a reader still needs it."""
    promised = _promised(db)
    if not _truncated(db, wait):
        return False
    if promised is not None:
        db.execute(SQL["clear_setting"], (_PENDING, promised))
    return True


def settle_promised(db: apsw.Connection) -> None:
    """Complete an earlier erasure where one waits; whoever opens or closes does not wait."""
    if _promised(db) is not None:
        settle(db, wait=0)


def compact(db: apsw.Connection) -> None:
    """Rewrite the file without what was deleted; MemoryStoreError while others use it."""
    _require_alone(settle(db))
    db.set_busy_timeout(WAIT_MILLISECONDS)
    try:
        db.execute("VACUUM")
    finally:
        db.set_busy_timeout(BUSY_MILLISECONDS)
    _require_alone(settle(db))


def _require_alone(alone: bool) -> None:
    if not alone:
        raise MemoryStoreError(
            "others are reading the database file, which keeps it from being compacted: "
            "try again when they are done"
        )


def _promised(db: apsw.Connection) -> str | None:
    row = db.execute(SQL["setting"], (_PENDING,)).fetchone()
    return None if row is None else str(row[0])


def _truncated(db: apsw.Connection, wait: int) -> bool:
    db.set_busy_timeout(wait)
    try:
        row = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except apsw.BusyError:
        return False
    finally:
        db.set_busy_timeout(BUSY_MILLISECONDS)
    return row is None or not row[0]
