"""One writes at a time, for all who wait: their jobs share a transaction and its commit."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import islice

import apsw

from muniment.errors import AuditError, MemoryStoreError
from muniment.stores.sqlite.calls import Answer, Call, FutureCall, Job, Rest, ThreadCall
from muniment.stores.sqlite.connections import is_open
from muniment.stores.sqlite.errors import no_thread, told
from muniment.stores.sqlite.outbox import Outbox

_MOST_IN_ONE_COMMIT = 256


Current = Callable[[apsw.Connection | None], apsw.Connection]
"""The connection to go on with, given the one so far, or None where it was closed."""


class Writer:
    """Owns the connection that writes. A call is done once its commit is durable.

    Before anything is written `current` is asked for the connection to write with.

    One of those who wait leads: he writes what waits, his own job and those of others, and then
    hands on to one who came meanwhile. A thread of the writer's own, started when it is first
    needed, leads for those who may not wait: an event loop. An interrupt of whoever leads undoes
    his own job alone; those of others are begun again.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        outbox: Outbox | None = None,
        *,
        current: Current | None = None,
    ) -> None:
        self._connection = connection
        self._outbox = outbox
        self._current = current
        self._resting: Rest | None = None
        self._synchronous = int(connection.execute("PRAGMA synchronous").get)
        self._gate = threading.Lock()  # over the queue, who leads, and `_closed`
        self._queue: deque[Call] = deque()  # a call leaves it when it is done
        self._leader: Call | None = None
        self._leading = 0  # the thread that does
        self._closed = False
        self._answered: list[Call] = []  # of the transaction under way, and its commit
        self._committed: list[apsw.Cursor] = []
        self._thread: threading.Thread | None = None
        self._summoned = threading.Semaphore(0)
        self.commits = 0

    def run(self, job: Job[Answer], *, apart: bool = False, needs_log: bool = False) -> Answer:
        """The answer of a job, which this thread may have to write with others'."""
        call = ThreadCall(job, apart=apart, needs_log=needs_log)
        self._see_through(call)
        answer: Answer = call.result()
        return answer

    def submit(
        self, job: Job[Answer], *, apart: bool = False, needs_log: bool = False
    ) -> Future[Answer]:
        """Queue a job for the writer's thread. Its failure undoes its own changes only."""
        if self._thread is None:
            self._start()
        call = FutureCall(job, apart, needs_log, self._summoned.release)
        self._enter(call)
        if self._leader is call:
            call.wake()
        return call.future

    def close(self) -> None:
        """Finish what is queued, then close the connection; a second time does nothing."""
        self._see_through(ThreadCall(apsw.Connection.close, apart=True), closing=True)
        if self._thread is not None:
            self._summoned.release()
            self._thread.join()

    def rest(self) -> bool:
        """Wait until nobody writes, hold everybody up, and close a connection that can be
        opened again: True where it is closed. Does nothing where the writer is closed, or for
        whoever writes just now.
        """
        if self._closed or self._leading == threading.get_ident():
            return False
        call = Rest()
        self._enter(call)
        self._resting = call
        while self._leader is not call:
            call.wait()
        if self._current is None:
            return False
        self._connection.close()
        return True

    def go_on(self) -> None:
        """Let those go on who were held up by `rest`."""
        call, self._resting = self._resting, None
        if call is not None:
            self._abandon(call)

    def in_child(self) -> Writer:
        """A writer for a process that was forked meanwhile, on the same connection."""
        return Writer(self._connection, self._outbox)

    # -- leading and waiting -----------------------------------------------------------------

    def _enter(self, call: Call, *, closing: bool = False) -> None:
        with self._gate:
            if self._closed and not closing:
                raise MemoryStoreError("the store is closed")
            self._closed = closing
            self._queue.append(call)
            if self._leader is None:
                self._leader = call

    def _see_through(self, call: ThreadCall, *, closing: bool = False) -> None:
        """Queue a call and wait for it to be done, or for the lead."""
        try:
            self._enter(call, closing=closing)
            while not call.done:
                if self._leader is call:
                    self._lead()
                else:
                    call.wait()
        except BaseException:
            self._abandon(call)
            raise

    def _lead(self) -> None:
        self._leading = threading.get_ident()
        try:
            self._serve()
        except BaseException:
            self._recover()
            raise
        finally:
            self._leading = 0
        self._hand_on()

    def _hand_on(self) -> None:
        with self._gate:
            while self._queue and self._queue[0].done:
                self._queue.popleft()
            self._leader = self._queue[0] if self._queue else None
            if self._leader is not None:
                self._leader.wake()

    def _abandon(self, call: Call) -> None:
        """Its caller was interrupted: it is not made unless it is already."""
        with self._gate, contextlib.suppress(ValueError):
            self._queue.remove(call)
        leader = self._leader
        if leader is call:
            self._hand_on()
        elif leader is not None:
            leader.wake()

    def _start(self) -> None:
        """Start the writer's own thread, before anything may count on it."""
        with self._gate:
            if self._thread is not None or self._closed:
                return
            thread = threading.Thread(target=self._stand_by, name="muniment-writer", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                raise no_thread() from None
            self._thread = thread

    def _stand_by(self) -> None:
        while True:
            self._summoned.acquire()
            if isinstance(self._leader, FutureCall):
                self._lead()
            elif self._closed:
                return

    # -- leading -----------------------------------------------------------------------------

    def _serve(self) -> None:
        with self._gate:
            waiting = list(islice(self._queue, _MOST_IN_ONE_COMMIT))
        begun = [call for call in waiting if not call.done and call.begins()]
        if self._current is not None and not self._closed and not self._found(self._current, begun):
            return
        together = [call for call in begun if not call.apart]
        apart = [call for call in begun if call.apart]
        if together and self._outbox is not None:
            together = self._admitted(together, self._outbox)
        if together:
            self._commit(together)
        for call in apart:
            self._run_apart(call)

    def _found(self, current: Current, begun: Sequence[Call]) -> bool:
        """Whether the file is there and open; where it is not, everybody is told why."""
        held = self._connection if is_open(self._connection) else None
        try:
            self._connection = current(held)
        except Exception as error:
            for call in begun:
                call.fail(told(error))
            return False
        return True

    def _admitted(self, batch: list[Call], outbox: Outbox) -> list[Call]:
        """Those that may begin; the others are told that the audit log is unfit."""
        fault = outbox.fault(self._connection)
        if fault is None:
            return batch
        for call in batch:
            if call.needs_log:
                call.fail(AuditError(str(fault)))
        return [call for call in batch if not call.needs_log]

    def _commit(self, batch: Sequence[Call]) -> None:
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            for call in batch:
                self._attempt(call)
            # One step of the interpreter: an interrupt finds it done and noted, or neither.
            self._committed.extend(map(execute, ("COMMIT",)))
        except Exception as error:
            self._roll_back()
            self._answered.clear()
            for call in batch:
                if not call.done:
                    call.fail(told(error))
            return
        self.commits += 1
        if self._outbox is not None:
            self._outbox.settle(self._connection)
        self._release()

    def _attempt(self, call: Call) -> None:
        """Run one job; its failure undoes what it did, in a transaction of others too."""
        execute, first = self._connection.execute, not self._answered
        if not first:
            execute("SAVEPOINT job")
        try:
            call.answer = call.job(self._connection)
        except Exception as error:
            call.fail(told(error))
            if not self._connection.in_transaction:
                raise  # the file failed (a full disk, say): SQLite undid the whole transaction
            execute("ROLLBACK; BEGIN IMMEDIATE" if first else "ROLLBACK TO job; RELEASE job")
            return
        if not first:
            execute("RELEASE job")
        self._answered.append(call)

    def _release(self) -> None:
        """Let go of those whose answers are durable."""
        for call in self._answered:
            call.finish()
        self._answered.clear()
        self._committed.clear()

    def _roll_back(self) -> None:
        with contextlib.suppress(apsw.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _run_apart(self, call: Call) -> None:
        try:
            call.answer = call.job(self._connection)
        except Exception as error:
            call.fail(told(error))
        else:
            call.finish()

    def _recover(self) -> None:
        """After an interrupt: what was committed is answered, what was not is undone."""
        if self._committed:
            self._release()
        self._answered.clear()
        self._roll_back()
        with contextlib.suppress(apsw.Error):  # closed, for one
            self._connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        with self._gate:
            for call in self._queue:
                if call.done or call.error is not None:
                    call.finish()
