"""SQLite's errors in our words."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

import apsw

from muniment.errors import MemoryStoreError

_ALLOWED = "this user must be allowed to write the file and its folder"
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (apsw.NotADBError, "the file is not a Muniment database (or is encrypted); it was left as is"),
    (apsw.CorruptError, "the database file is damaged; restore a copy or export what can be read"),
    (apsw.FullError, "the disk is full; nothing was changed"),
    (apsw.ReadOnlyError, f"the database file is read-only; nothing was changed: {_ALLOWED}"),
    (apsw.CantOpenError, f"the database file cannot be opened: its folder must exist; {_ALLOWED}"),
    (apsw.BusyError, "the database stayed locked by another process; nothing was changed"),
    (apsw.LockedError, "the database stayed locked by another process; nothing was changed"),
    (apsw.InterruptError, "the call was interrupted"),
    (apsw.IOError, "the disk failed at the database file; check its room, quota and health"),
)
_ERRNO = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "the disk is full; nothing was changed"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), f"the database file is denied: {_ALLOWED}"),
    errno.ENOENT: "the folder of the database file is not there",
    errno.EROFS: "the disk is mounted read-only; nothing was changed",
}


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
        unusual = f"the database file cannot be used: {error.strerror}"
        return MemoryStoreError(_ERRNO.get(error.errno or 0, unusual))
    return error


def no_thread() -> MemoryStoreError:
    """The system gives this process no further thread."""
    return MemoryStoreError("this process can start no further thread; nothing was changed")


def _explain(error: apsw.Error) -> str:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    return f"SQLite reports {type(error).__name__}; nothing was changed"
