"""Whether a database's files are still where they were opened.

SQLite goes on with files that were removed or replaced under it, as long as it has them open: what
it is told to store then is gone once they are closed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from muniment.errors import MemoryStoreError

Identity = tuple[int, int] | None

_GONE = (
    "the database file was moved, removed or replaced while it is open; nothing was changed: put "
    "it back, or close the store and open it anew"
)
_JOURNAL_GONE = (
    "a journal of the database file (-wal, -shm) was removed or replaced while it is open; nothing "
    "was changed: try again, or close every store on the file and open it anew"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file and its journals as they were when it was opened; None at rest, when nobody here has
    it open and whatever journals there are will do."""

    path: str
    file: Identity
    journals: tuple[Identity, Identity] | None

    @classmethod
    def of(cls, path: str) -> Place:
        """The file as it is now, once a connection has read from it."""
        return cls(path, _identity(path), _journals(path))

    def at_rest(self) -> Place:
        """The same file, closed until it is needed."""
        return replace(self, journals=None)

    def keeps_its_journals(self) -> bool:
        """False where a journal is another, or none; MemoryStoreError where the file itself is."""
        if _identity(self.path) != self.file:
            raise MemoryStoreError(_GONE)
        return self.journals is None or _journals(self.path) == self.journals

    def require(self) -> None:
        """MemoryStoreError where the file is not the one that is open, or a journal is not."""
        if not self.keeps_its_journals():
            raise journal_gone()


def journal_gone() -> MemoryStoreError:
    """A journal is not the one that is open."""
    return MemoryStoreError(_JOURNAL_GONE)


def _journals(path: str) -> tuple[Identity, Identity]:
    return _identity(f"{path}-wal"), _identity(f"{path}-shm")


def _identity(path: str) -> Identity:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
