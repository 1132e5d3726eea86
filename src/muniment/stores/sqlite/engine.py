"""Connections to one SQLite file: readers for any thread, and one writer that shares commits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import apsw

from muniment.errors import MemoryStoreError
from muniment.stores.sqlite.migrate import migrate

Answer = TypeVar("Answer")
Job = Callable[[apsw.Connection], Answer]

_BUSY_MS = 30_000
_READERS = 4
_MOST_IN_ONE_COMMIT = 256

# Each setting with its reason.
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",  # readers and the writer do not wait for each other
    "PRAGMA synchronous = FULL",  # an acknowledged write survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is deleted is overwritten, not just unlinked
    "PRAGMA temp_store = MEMORY",  # sorting leaves no text in a temporary file
    "PRAGMA cache_size = -16384",
)


class Engine:
    """Runs jobs on a SQLite file. Raises MemoryStoreError for what SQLite reports."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._memory = self._path == ":memory:"
        self._jobs: queue.Queue[tuple[Job[Any], Future[Any]] | None] = queue.Queue()
        self._idle: queue.SimpleQueue[apsw.Connection] = queue.SimpleQueue()
        self._readers: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        with store_errors():
            self._writer = self._connect()
            migrate(self._writer)
        self._thread = threading.Thread(target=self._drain, name="muniment-writer", daemon=True)
        self._thread.start()

    def _connect(self) -> apsw.Connection:
        if not self._memory:
            created = not os.path.exists(self._path)
            if created:
                Path(self._path).touch(mode=0o600, exist_ok=True)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(self._path, flags=flags, statementcachesize=200)
        connection.set_busy_timeout(_BUSY_MS)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        return connection

    # -- reading ---------------------------------------------------------------------------

    def read(self, job: Job[Answer]) -> Answer:
        """Run `job` in one read transaction on the calling thread."""
        if self._memory:  # a private database has one connection
            return self.write(job)
        connection = self._reader()
        try:
            return self._in_snapshot(connection, job)
        finally:
            self._idle.put(connection)

    async def read_async(self, job: Job[Answer]) -> Answer:
        """Like `read`, off the event loop; a cancelled read is interrupted, not abandoned."""
        if self._memory:
            return await self.write_async(job)
        running: list[apsw.Connection] = []

        def work() -> Answer:
            connection = self._reader()
            running.append(connection)
            try:
                return self._in_snapshot(connection, job)
            finally:
                running.clear()
                self._idle.put(connection)

        task = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            for connection in running:
                connection.interrupt()
            task.add_done_callback(_forget)
            raise

    def _reader(self) -> apsw.Connection:
        self._require_open()
        with contextlib.suppress(queue.Empty):
            return self._idle.get_nowait()
        with self._lock:
            if len(self._readers) < _READERS:
                with store_errors():
                    connection = self._connect()
                self._readers.append(connection)
                return connection
        return self._idle.get()

    @staticmethod
    def _in_snapshot(connection: apsw.Connection, job: Job[Answer]) -> Answer:
        with store_errors():
            connection.execute("BEGIN")
            try:
                return job(connection)
            finally:
                connection.execute("COMMIT")

    # -- writing ---------------------------------------------------------------------------

    def submit(self, job: Job[Answer]) -> Future[Answer]:
        """Queue a write; its future is done once the commit is durable."""
        self._require_open()
        future: Future[Answer] = Future()
        self._jobs.put((job, future))
        return future

    def write(self, job: Job[Answer]) -> Answer:
        """Run a write and wait for its commit."""
        return self.submit(job).result()

    async def write_async(self, job: Job[Answer]) -> Answer:
        """Like `write`, off the event loop. A write that began is not undone by cancellation."""
        return await asyncio.wrap_future(self.submit(job))

    def _drain(self) -> None:
        while (first := self._jobs.get()) is not None:
            batch = [first]
            ended = False
            with contextlib.suppress(queue.Empty):
                while len(batch) < _MOST_IN_ONE_COMMIT and not ended:
                    following = self._jobs.get_nowait()
                    if following is None:
                        ended = True
                    else:
                        batch.append(following)
            self._commit([item for item in batch if item[1].set_running_or_notify_cancel()])
            if ended:
                return

    def _commit(self, batch: list[tuple[Job[Any], Future[Any]]]) -> None:
        """One transaction for the whole batch, a savepoint a job."""
        done: list[tuple[Future[Any], Any]] = []
        try:
            with store_errors():
                self._writer.execute("BEGIN IMMEDIATE")
                for job, future in batch:
                    self._attempt(job, future, done)
                self._writer.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(apsw.Error):
                self._writer.execute("ROLLBACK")
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for future, answer in done:
            future.set_result(answer)

    def _attempt(
        self, job: Job[Any], future: Future[Any], done: list[tuple[Future[Any], Any]]
    ) -> None:
        self._writer.execute("SAVEPOINT job")
        try:
            with store_errors():
                answer = job(self._writer)
        except Exception as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK TO job; RELEASE job")
            future.set_exception(error)
            if not self._writer.in_transaction:
                raise  # the file failed (full disk): the whole transaction is gone
            return
        self._writer.execute("RELEASE job")
        done.append((future, answer))

    async def truncate_log_async(self) -> bool:
        """Write the journal back and empty it; False while a reader still needs it."""

        def work() -> bool:
            if self._memory:
                return True
            connection = self._reader()
            try:
                with store_errors():
                    connection.set_busy_timeout(1_000)
                    rows = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    return not rows[0][0]
            finally:
                connection.set_busy_timeout(_BUSY_MS)
                self._idle.put(connection)

        return await asyncio.get_running_loop().run_in_executor(None, work)

    # -- closing ---------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._closed:
            raise MemoryStoreError("the store is closed")

    def close(self) -> None:
        """Finish queued writes and close every connection."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        self._thread.join()
        for connection in (*self._readers, self._writer):
            connection.close()


def _forget(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


@contextlib.contextmanager
def store_errors() -> Iterator[None]:
    """SQLite's errors as ours: what is wrong and what to do, never a statement or a value."""
    try:
        yield
    except apsw.Error as error:
        raise MemoryStoreError(_explain(error)) from None
    except OSError as error:
        raise MemoryStoreError(f"the database file cannot be used: {error.strerror}") from None


def _explain(error: apsw.Error) -> str:
    match error:
        case apsw.NotADBError():
            return "the file is not a Muniment database (or is encrypted); it was left as it is"
        case apsw.CorruptError():
            return "the database file is damaged; restore a copy or export what can be read"
        case apsw.FullError():
            return "the disk is full; nothing was changed"
        case apsw.ReadOnlyError():
            return "the database file is read-only; nothing was changed"
        case apsw.CantOpenError():
            return "the database file cannot be opened; check that its folder exists"
        case apsw.BusyError() | apsw.LockedError():
            return "the database stayed locked by another process; nothing was changed"
        case apsw.InterruptError():
            return "the call was interrupted"
        case _:
            return f"SQLite reports {type(error).__name__}; nothing was changed"
