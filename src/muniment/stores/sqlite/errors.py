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
    except apsw.Error as error:
        kind = NoRoomError if isinstance(error, _NO_ROOM) else MemoryStoreError
        raise kind(_explain(error)) from None
    except OSError as error:
        raise MemoryStoreError(f"the database file cannot be used: {error.strerror}") from None


def _explain(error: apsw.Error) -> str:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    return f"SQLite reports {type(error).__name__}; nothing was changed"
