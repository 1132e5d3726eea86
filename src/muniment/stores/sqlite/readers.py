"""A few threads that read, each with its connection, each job in one snapshot."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import apsw

from muniment.errors import MemoryStoreError
from muniment.stores.sqlite.errors import store_errors

Answer = TypeVar("Answer")
Job = Callable[[apsw.Connection], Answer]


class Read(Generic[Answer]):
    """One read, which can be interrupted while it runs and not after."""

    def __init__(self, job: Job[Answer]) -> None:
        self.future: Future[Answer] = Future()
        self._job = job
        self._lock = threading.Lock()
        self._running: apsw.Connection | None = None

    def interrupt(self) -> None:
        """Stop the statement that runs for this read; the next read is not touched."""
        with self._lock:
            if self._running is not None:
                self._running.interrupt()

    def run(self, connection: apsw.Connection) -> None:
        """Answer the future from one snapshot."""
        if not self.future.set_running_or_notify_cancel():
            return
        self._hold(connection)
        try:
            answer = _in_snapshot(connection, self._job)
        except Exception as error:
            self._hold(None)
            self.future.set_exception(error)
        else:
            self._hold(None)
            self.future.set_result(answer)

    def _hold(self, connection: apsw.Connection | None) -> None:
        with self._lock:
            self._running = connection


class Readers:
    """Runs reads on at most `limit` threads, started as they are needed."""

    def __init__(self, connect: Callable[[], apsw.Connection], *, limit: int) -> None:
        self._connect = connect
        self._limit = limit
        self._waiting: queue.SimpleQueue[Read[Any] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._busy = 0
        self._closed = False

    def submit(self, job: Job[Answer]) -> Read[Answer]:
        """Queue a read."""
        read = Read(job)
        with self._lock:
            if self._closed:
                raise MemoryStoreError("the store is closed")
            self._busy += 1
            if self._busy > len(self._threads) < self._limit:
                self._start()
            self._waiting.put(read)
        return read

    def close(self) -> None:
        """Finish what is queued, then close every connection."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, []
            for _ in threads:
                self._waiting.put(None)
        for thread in threads:
            thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="muniment-reader", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        connection: apsw.Connection | None = None
        while (read := self._waiting.get()) is not None:
            try:
                if connection is None:
                    with store_errors():
                        connection = self._connect()
                read.run(connection)
                connection = _usable(connection)
            except MemoryStoreError as error:
                read.future.set_exception(error)
            finally:
                with self._lock:
                    self._busy -= 1
            del read
        if connection is not None:
            connection.close()


def _usable(connection: apsw.Connection) -> apsw.Connection | None:
    """The connection, unless a statement of the read is still open.

    Such a statement keeps its snapshot, and every later read of the connection would be answered
    from the past without a word. One release of the driver leaves statements open by itself.
    """
    if connection.txn_state("main") == apsw.SQLITE_TXN_NONE:
        return connection
    connection.close(True)
    return None


def _in_snapshot(connection: apsw.Connection, job: Job[Answer]) -> Answer:
    with store_errors():
        connection.execute("BEGIN")
        try:
            return job(connection)
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")
