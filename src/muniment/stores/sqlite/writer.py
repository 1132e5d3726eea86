"""One thread that writes: jobs that wait together share one transaction and one commit."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import apsw

from muniment.errors import AuditError, MemoryStoreError
from muniment.stores.sqlite.errors import store_errors
from muniment.stores.sqlite.outbox import Outbox

Answer = TypeVar("Answer")
Job = Callable[[apsw.Connection], Answer]

_MOST_IN_ONE_COMMIT = 256
_PATIENCE = 0.5
"""The share of the last commit's time for which the next one waits to be shared as well."""
_MOST_PATIENT_SECONDS = 0.005


@dataclass(slots=True)
class _Waiting:
    """A job and who waits for it.

    One that is `apart` runs outside a transaction; one that `needs_log` only while the audit
    log, where there is one, can take its records.
    """

    job: Job[Any]
    apart: bool
    needs_log: bool
    future: Future[Any] = field(default_factory=Future)


class Writer:
    """Owns the connection that writes. A future is done once its commit is durable."""

    def __init__(self, connection: apsw.Connection, outbox: Outbox | None = None) -> None:
        self._connection = connection
        self._outbox = outbox
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self.commits = 0
        self._shared, self._patience = 1, 0.0
        self._thread = threading.Thread(target=self._run, name="muniment-writer", daemon=True)
        self._thread.start()

    def submit(
        self, job: Job[Answer], *, apart: bool = False, needs_log: bool = False
    ) -> Future[Answer]:
        """Queue a job. Its failure undoes its own changes only."""
        waiting = _Waiting(job, apart, needs_log)
        with self._lock:
            if self._closed:
                raise MemoryStoreError("the store is closed")
            self._waiting.put(waiting)
        return waiting.future

    def close(self) -> None:
        """Finish what is queued, then close the connection."""
        with self._lock:
            closing, self._closed = not self._closed, True
        if closing:
            self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            wanted = [one for one in batch if one and one.future.set_running_or_notify_cancel()]
            together = self._admitted([one for one in wanted if not one.apart])
            if together:
                self._commit(together)
            for one in wanted:
                if one.apart:
                    self._run_apart(one)
            if None in batch:
                self._connection.close()
                return

    def _next_batch(self) -> list[_Waiting | None]:
        """What waits, and what is about to: writers that shared the last commit come again, and
        waiting a part of a commit's time for them saves a whole one."""
        batch = [self._waiting.get()]
        latest = time.perf_counter() + self._patience
        with contextlib.suppress(queue.Empty):
            while len(batch) < _MOST_IN_ONE_COMMIT:
                late = len(batch) >= self._shared or time.perf_counter() >= latest
                wait = 0.0 if late else latest - time.perf_counter()
                batch.append(self._waiting.get(timeout=max(wait, 0.0)))
        self._shared = len(batch)
        return batch

    def _admitted(self, batch: list[_Waiting]) -> list[_Waiting]:
        """Those that may begin; the others are told that the audit log is unfit."""
        if self._outbox is None or not batch:
            return batch
        fault = self._outbox.fault(self._connection)
        if fault is None:
            return batch
        for one in batch:
            if one.needs_log:
                one.future.set_exception(AuditError(str(fault)))
        return [one for one in batch if not one.needs_log]

    def _commit(self, batch: list[_Waiting]) -> None:
        done: list[tuple[Future[Any], Any]] = []
        try:
            with store_errors():
                self._connection.execute("BEGIN IMMEDIATE")
                for one in batch:
                    self._attempt(one, done)
                begun = time.perf_counter()
                self._connection.execute("COMMIT")
        except Exception as error:
            self._roll_back()
            for one in batch:
                if not one.future.done():
                    one.future.set_exception(error)
            return
        self.commits += 1
        took = time.perf_counter() - begun
        self._patience = min(_PATIENCE * took, _MOST_PATIENT_SECONDS)
        if self._outbox is not None:
            self._outbox.settle(self._connection)
        for future, answer in done:
            future.set_result(answer)

    def _attempt(self, one: _Waiting, done: list[tuple[Future[Any], Any]]) -> None:
        self._connection.execute("SAVEPOINT job")
        try:
            with store_errors():
                answer = one.job(self._connection)
        except Exception as error:
            one.future.set_exception(error)
            if not self._connection.in_transaction:
                raise  # the file failed (a full disk, say): SQLite undid the whole transaction
            self._connection.execute("ROLLBACK TO job; RELEASE job")
            return
        self._connection.execute("RELEASE job")
        done.append((one.future, answer))

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):
                self._connection.execute("ROLLBACK")

    def _run_apart(self, one: _Waiting) -> None:
        try:
            with store_errors():
                answer = one.job(self._connection)
        except Exception as error:
            one.future.set_exception(error)
        else:
            one.future.set_result(answer)
