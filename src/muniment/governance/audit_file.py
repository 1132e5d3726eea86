"""The file of an audit log: opened, locked, written to its end (POSIX)."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file is written by anyone."""

    device: int
    inode: int
    size: int
    modified_ns: int

    def grew_into(self, later: Stamp) -> bool:
        """Whether `later` is the same file with bytes added."""
        same = (self.device, self.inode) == (later.device, later.inode)
        return same and later.size > self.size


def stamp(descriptor: int) -> Stamp:
    """The stamp of an open file."""
    return stamp_of(os.fstat(descriptor))


def stamp_of(state: os.stat_result) -> Stamp:
    """The stamp in what the system says of a file."""
    return Stamp(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def create(path: Path) -> None:
    """An empty file with mode 0600 where there is none, its name on the disk; else nothing."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(descriptor)
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_from(descriptor: int, offset: int) -> bytes:
    """What the file holds from `offset` on."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, max(0, size - offset), offset)


@contextmanager
def opened(path: Path, *, writing: bool) -> Iterator[int]:
    """A descriptor of the regular file at `path`, locked: exclusively for writing, else shared.

    The lock belongs to this descriptor, so it holds off the threads of this process as well as
    other processes. OSError when the file is missing, not regular, or may not be opened.
    """
    while True:
        # Without O_NONBLOCK, a pipe at this path would block instead of being refused.
        flags = os.O_RDWR | os.O_APPEND if writing else os.O_RDONLY
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _require_regular(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX if writing else fcntl.LOCK_SH)
            if not _is_at(path, descriptor):
                continue  # replaced while the lock was awaited
            yield descriptor
            return
        finally:
            unlock(descriptor)
            os.close(descriptor)


def unlock(descriptor: int) -> None:
    """Release the lock now: closing alone would not, if a fork holds the descriptor too."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def append_bytes(descriptor: int, content: bytes, *, at: int, fsync: bool) -> None:
    """Write `content` after byte `at`, the file's end, or leave the file as it was."""
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        _mark(descriptor)
        if fsync:
            os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, at)
        raise


def _mark(descriptor: int) -> None:
    """Set the time of modification to the nanosecond.

    The kernel's own stamps move in steps of milliseconds: a foreign edit right after ours could
    keep the same one. A file of another owner refuses this, and keeps the kernel's stamp.
    """
    now = time.time_ns()
    with suppress(PermissionError):
        os.utime(descriptor, ns=(now, now))


def _require_regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("not a regular file")


def _is_at(path: Path, descriptor: int) -> bool:
    return os.path.samestat(os.stat(path), os.fstat(descriptor))
