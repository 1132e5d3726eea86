"""A few threads that read, each with its connection, each job in one snapshot."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic

import apsw

from muniment.errors import MemoryStoreError
from muniment.stores.driven import Handed
from muniment.stores.sqlite.calls import Answer, Job
from muniment.stores.sqlite.errors import no_thread, store_errors, told


class Read(Generic[Answer]):
    """One read, which can be interrupted until its job is done and not after."""

    def __init__(self, job: Job[Answer]) -> None:
        self.handed: Handed[Answer] = Handed()
        self._job = job
        self._lock = threading.Lock()
        self._running: apsw.Connection | None = None
        self._unwanted = False

    def interrupt(self) -> None:
        """Stop the statement that runs for this read, or never begin; no other is touched."""
        with self._lock:
            self._unwanted = True
            if self._running is not None:
                self._running.interrupt()

    def run(self, connection: apsw.Connection) -> Callable[[], None]:
        """Make the answer from one snapshot; what is returned hands it over."""
        if not self._hold(connection):
            return _nothing
        try:
            answer = _in_snapshot(connection, self._job)
        except Exception as error:
            return partial(self.handed.fail, error)
        else:
            return partial(self.handed.give, answer)
        finally:
            self._hold(None)

    def _hold(self, connection: apsw.Connection | None) -> bool:
        with self._lock:
            self._running = None if self._unwanted else connection
            return self._running is not None


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
        self._resting = False

    def submit(self, job: Job[Answer]) -> Read[Answer]:
        """Queue a read."""
        read = Read(job)
        with self._lock:
            if self._closed:
                raise MemoryStoreError("the store is closed")
            if not self._resting and self._busy >= len(self._threads) < self._limit:
                self._start()
            self._busy += 1
            self._waiting.put(read)
        return read

    def close(self) -> None:
        """Finish what is queued, then close every connection."""
        with self._lock:
            self._closed = True
        self._end()

    def rest(self) -> None:
        """Finish what is queued and close every connection; what comes later waits."""
        with self._lock:
            self._resting = True
        self._end()

    def go_on(self) -> None:
        """Read again, what came meanwhile first."""
        with self._lock, contextlib.suppress(MemoryStoreError):  # the next read tries again
            resting, self._resting = self._resting, False
            for _ in range(min(self._busy, self._limit) if resting else 0):
                self._start()

    def _end(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, []
            for _ in threads:
                self._waiting.put(None)
        for thread in threads:
            thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="muniment-reader", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise no_thread() from None
        else:
            self._threads.append(thread)

    def _run(self) -> None:
        connection: apsw.Connection | None = None
        while (read := self._waiting.get()) is not None:
            try:
                if connection is None:
                    connection = self._connect()
                hand_over = read.run(connection)
                connection = _usable(connection)
            except Exception as error:  # a callback's own, too: the thread goes on
                hand_over = partial(read.handed.fail, told(error))
            finally:
                with self._lock:
                    self._busy -= 1
            hand_over()  # last: whoever waits finds this thread idle
            del read, hand_over
        if connection is not None:
            connection.close()


def _nothing() -> None:
    """Nobody waits."""


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
