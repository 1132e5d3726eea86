"""SQLite's errors in our words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import apsw

from muniment.errors import MemoryStoreError

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (apsw.NotADBError, "the file is not a Muniment database (or is encrypted); it was left as is"),
    (apsw.CorruptError, "the database file is damaged; restore a copy or export what can be read"),
    (apsw.FullError, "the disk is full; nothing was changed"),
    (apsw.ReadOnlyError, "the database file is read-only; nothing was changed"),
    (apsw.CantOpenError, "the database file cannot be opened; check that its folder exists"),
    (apsw.BusyError, "the database stayed locked by another process; nothing was changed"),
    (apsw.LockedError, "the database stayed locked by another process; nothing was changed"),
    (apsw.InterruptError, "the call was interrupted"),
    (apsw.IOError, "the database file cannot be read or written"),
)


_NO_ROOM = (apsw.FullError, apsw.IOError)


class NoRoomError(MemoryStoreError):
    """A write did not fit on the disk."""


@contextlib.contextmanager
def store_errors() -> Iterator[None]:
    """What is wrong and what to do, as MemoryStoreError: never a statement or a value."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise told(error) from None


def told(error: Exception) -> Exception:
    """SQLite's error, or the system's, as a MemoryStoreError; any other as it is."""
    if isinstance(error, apsw.Error):
        kind = NoRoomError if isinstance(error, _NO_ROOM) else MemoryStoreError
        return kind(_explain(error))
    if isinstance(error, OSError):
        return MemoryStoreError(f"the database file cannot be used: {error.strerror}")
    return error


def _explain(error: apsw.Error) -> str:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    return f"SQLite reports {type(error).__name__}; nothing was changed"
