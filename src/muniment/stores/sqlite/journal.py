"""After an erasure: its bytes leave the file and the journal, or that is remembered in the file.

Deleted rows are overwritten when the journal is written back, and the journal is then emptied;
both wait for readers of an older snapshot, in other processes too. SQLite moves rows between
pages and leaves copies in the pages' unused parts, which `secure_delete` does not reach, so the
file is written anew besides.
"""

from __future__ import annotations

from uuid import uuid4

import apsw

from muniment.errors import MemoryStoreError
from muniment.stores.sqlite.connections import BUSY_MILLISECONDS
from muniment.stores.sqlite.statements import SQL

WAIT_MILLISECONDS = 1_000
LARGEST_REWRITTEN_BYTES = 128 << 20  # about 2 s of the writer's time; `compact` takes any size
_PENDING = "erasure_pending"
_HINDRANCES = (apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError)


def promise(db: apsw.Connection) -> None:
    """Remember in the transaction of an erasure that its bytes are still to go."""
    # A value of its own: whoever completes this clears only what was deleted before that.
    db.execute(SQL["record_setting"], (_PENDING, uuid4().hex))


def is_pending(db: apsw.Connection) -> bool:
    """Whether bytes of an erasure are still to go."""
    return _promised(db) is not None


def settle(db: apsw.Connection, *, wait: int | None = None) -> bool:
    """Complete the erasures so far, outside a transaction; False while that has to wait.

    It waits for readers of the journal, for room on the disk, for `compact` where the file is
    large, and for a repair where it is damaged.
    """
    wait = WAIT_MILLISECONDS if wait is None else wait
    promised = _promised(db)
    if promised is None:
        return emptied(db, wait=wait)
    if not emptied(db, wait=wait) or _size(db) > LARGEST_REWRITTEN_BYTES:
        return False
    try:
        return _rewritten(db, wait) and _kept(db, promised)
    except apsw.CorruptError:  # what could be read is erased; the rest is for a copy to restore
        return False


def settle_promised(db: apsw.Connection) -> None:
    """Complete an earlier erasure where one waits; whoever opens or closes does not wait."""
    if _promised(db) is not None:
        settle(db, wait=0)


def compact(db: apsw.Connection, *, spilling: bool) -> None:
    """Rewrite the file without what was deleted; MemoryStoreError while others use it.

    The copy is made in memory; with `spilling`, that of a large file in a temporary file, which
    has no name and is plain.
    """
    promised = _promised(db)
    spilling = spilling and _size(db) > LARGEST_REWRITTEN_BYTES
    db.execute(f"PRAGMA temp_store = {'FILE' if spilling else 'MEMORY'}")
    try:
        done = emptied(db) and _rewritten(db, WAIT_MILLISECONDS)
    finally:
        db.execute("PRAGMA temp_store = MEMORY")
    if not done:
        raise MemoryStoreError(
            "the file cannot be compacted while others read or write it, or without room for a "
            "second copy: try again then"
        )
    if promised is not None:
        _kept(db, promised)


def emptied(db: apsw.Connection, *, wait: int | None = None) -> bool:
    """Write the journal back and empty it; False while a reader still needs it."""
    db.set_busy_timeout(WAIT_MILLISECONDS if wait is None else wait)
    try:
        row = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except apsw.BusyError:
        return False
    finally:
        db.set_busy_timeout(BUSY_MILLISECONDS)
    return row is None or not row[0]


def _rewritten(db: apsw.Connection, wait: int) -> bool:
    """Write every page anew and empty the journal of that; False where it cannot be done now."""
    db.set_busy_timeout(wait)
    try:
        db.execute("VACUUM")
    except _HINDRANCES:
        return False
    finally:
        db.set_busy_timeout(BUSY_MILLISECONDS)
    return emptied(db, wait=wait)


def _kept(db: apsw.Connection, promised: str) -> bool:
    db.execute(SQL["clear_setting"], (_PENDING, promised))
    return True


def _promised(db: apsw.Connection) -> str | None:
    row = db.execute(SQL["setting"], (_PENDING,)).fetchone()
    return None if row is None else str(row[0])


def _size(db: apsw.Connection) -> int:
    pages, size = db.execute("PRAGMA page_count").get, db.execute("PRAGMA page_size").get
    return int(pages) * int(size)
