"""The open files of a sharded store: shared by threads, the least recently used closed first."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment import forks
from muniment.errors import MemoryConfigurationError, MemoryStoreError
from muniment.stores.sqlite.blocking import SQLiteStore
from muniment.stores.sqlite.errors import store_errors

_SUFFIXES = ("", "-wal", "-shm", "-journal")
_PRIVATE = 0o700


@dataclass(slots=True)
class _Shard:
    """One tenant's file while it is open: `users` are calls under way."""

    store: SQLiteStore | None = None
    lock: int = -1
    users: int = 0
    busy: bool = False  # being opened, closed or deleted by one thread


class Shards(forks.Unshared):
    """Opens shards in a private folder, at most `most` at a time; `make` opens one by its path.

    Every process that has a shard open holds a shared lock on the file beside it, so that a
    shard is deleted only while nobody else uses it.
    """

    def __init__(self, folder: Path, most: int, make: Callable[[Path], SQLiteStore]) -> None:
        self._folder = folder
        self._most = most
        self._make = make
        self._shards: OrderedDict[str, _Shard] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False
        with store_errors():
            _make_private(folder)
        forks.tell(self)

    def begin_anew(self) -> None:
        """In a process that was forked off: nobody is using a shard."""
        self._changed = threading.Condition()
        for shard in self._shards.values():
            shard.users, shard.busy = 0, False

    def path(self, tenant: str) -> Path:
        """The tenant's file, named by a hash, so that any tenant's name can be one."""
        return self._folder / f"{hashlib.sha256(tenant.encode('utf-8')).hexdigest()}.db"

    def __len__(self) -> int:
        return sum(shard.store is not None for shard in self._shards.values())

    @contextmanager
    def open(self, tenant: str) -> Iterator[SQLiteStore]:
        """The tenant's store, opened where it is not; it stays open during the block."""
        name, shard = self._claim(tenant)
        try:
            if shard.store is None:
                self._open(shard, self.path(tenant))
        except BaseException:
            self._drop(name)
            raise
        finally:
            self._release(shard)
        store = shard.store
        if store is None:
            raise MemoryStoreError("the store is closed")
        try:
            yield store
        finally:
            with self._changed:
                shard.users -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, tenant: str) -> Iterator[SQLiteStore | None]:
        """The tenant's store while nobody else, in no process, has it; None where one does.

        What is left of the file at the end of the block is the caller's to delete.
        """
        name, shard = self._claim(tenant, alone=True)
        try:
            _close(shard)
            lock = _lock(self.path(tenant), fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock is None:
                yield None
                return
            shard.lock = lock
            with self._make(self.path(tenant)) as store:
                yield store
        finally:
            _close(shard)
            self._drop(name)
            self._release(shard)

    def delete(self, tenant: str) -> None:
        """Delete a shard's files, inside `alone`."""
        path = self.path(tenant)
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{path}{suffix}")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_lock_path(path))

    def close(self) -> None:
        """Wait for the calls under way, then close every file."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not any(map(_in_use, self._shards.values())))
            shards = list(self._shards.values())
            self._shards.clear()
        for shard in shards:
            _close(shard)

    # -- who may use what ------------------------------------------------------------------

    def _claim(self, tenant: str, *, alone: bool = False) -> tuple[str, _Shard]:
        """The tenant's shard, counted as used, or (`alone` or not yet open) busy for us."""
        with self._changed:
            while True:
                if self._closed:
                    raise MemoryStoreError("the store is closed")
                shard = self._shards.get(tenant)
                if shard is None and self._room():
                    shard = self._shards.setdefault(tenant, _Shard())
                if shard is not None and not shard.busy and not (alone and shard.users):
                    break
                self._changed.wait()
            self._shards.move_to_end(tenant)
            shard.busy = alone or shard.store is None
            shard.users += not alone
            return tenant, shard

    def _room(self) -> bool:
        """Whether one more may be opened, if need be after closing the one used longest ago."""
        if len(self._shards) < self._most:
            return True
        for tenant, shard in self._shards.items():
            if not _in_use(shard):
                del self._shards[tenant]
                _close(shard)
                return True
        return False

    def _open(self, shard: _Shard, path: Path) -> None:
        lock = _lock(path, fcntl.LOCK_SH)
        shard.lock = -1 if lock is None else lock
        shard.store = self._make(path)

    def _drop(self, tenant: str) -> None:
        with self._changed:
            shard = self._shards.pop(tenant, None)
        if shard is not None:
            _close(shard)

    def _release(self, shard: _Shard) -> None:
        with self._changed:
            shard.busy = False
            self._changed.notify_all()


def _in_use(shard: _Shard) -> bool:
    return shard.busy or shard.users > 0


def _close(shard: _Shard) -> None:
    store, shard.store = shard.store, None
    lock, shard.lock = shard.lock, -1
    try:
        if store is not None:
            store.close()
    finally:
        if lock >= 0:
            os.close(lock)


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _lock(path: Path, how: int) -> int | None:
    """A descriptor that holds the lock of a shard; None where it is not to be had now."""
    lock = _lock_path(path)
    while True:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how)
            if os.path.exists(lock) and os.path.samestat(os.stat(lock), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.close(descriptor)  # deleted while the lock was awaited


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        folder.chmod(_PRIVATE)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        raise MemoryConfigurationError("directory: must be private (mode 0700) where it has files")
