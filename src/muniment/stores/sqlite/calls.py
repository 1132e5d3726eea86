"""Jobs that wait to be written, each with whoever waits for its answer."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import apsw

Answer = TypeVar("Answer")
Job = Callable[[apsw.Connection], Answer]


class Call:
    """A job and what became of it. All but `wait` is done by whoever writes.

    One that is `apart` runs outside a transaction; one that `needs_log` only while the audit
    log, where there is one, can take its records. Finishing twice does nothing more.
    """

    __slots__ = ("answer", "apart", "done", "error", "job", "needs_log")

    def __init__(self, job: Job[Any], apart: bool, needs_log: bool) -> None:
        self.job, self.apart, self.needs_log = job, apart, needs_log
        self.answer: Any = None
        self.error: Exception | None = None
        self.done = False

    def begins(self) -> bool:
        """Whether the job is to run; False where it was cancelled before."""
        return True

    def fail(self, error: Exception) -> None:
        """The job's own failure."""
        self.error = error
        self.finish()

    def finish(self) -> None:
        """The job is made and durable, or failed: let go of whoever waits."""
        raise NotImplementedError

    def wake(self) -> None:
        """Have somebody look at the call: it is done, or its turn has come."""
        raise NotImplementedError


class ThreadCall(Call):
    """A call whose thread waits, and can write itself."""

    __slots__ = ("_asleep", "_waits")

    def __init__(self, job: Job[Any], *, apart: bool = False, needs_log: bool = False) -> None:
        super().__init__(job, apart, needs_log)
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self._waits = False

    def wait(self) -> None:
        """Until woken."""
        self._waits = True
        if not self.done:  # `finish` looks in the other order, so that one of both sees it
            self._asleep.acquire()

    def finish(self) -> None:
        self.done = True
        if self._waits:
            self.wake()

    def result(self) -> Any:
        """The job's answer, or its failure raised, once the call is done."""
        if self.error is None:
            return self.answer
        try:
            raise self.error
        finally:
            self.error = None  # it holds this frame, which holds the call

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is awake
            self._asleep.release()


class Rest(ThreadCall):
    """A call of whoever wants the lead, and to write nothing."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_nothing)

    def begins(self) -> bool:
        return False


def _nothing(_: apsw.Connection) -> None:
    """Never run."""


class FutureCall(Call):
    """A call that nobody writes by himself: `summon` is to get the thread that does."""

    __slots__ = ("_begun", "_summon", "future")

    def __init__(
        self, job: Job[Any], apart: bool, needs_log: bool, summon: Callable[[], None]
    ) -> None:
        super().__init__(job, apart, needs_log)
        self.future: Future[Any] = Future()
        self._summon = summon
        self._begun = False

    def begins(self) -> bool:
        if not self._begun:
            self._begun = self.future.set_running_or_notify_cancel()
            self.done = not self._begun
        return self._begun

    def finish(self) -> None:
        self.done = True
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.answer)
        else:
            self.future.set_exception(self.error)

    def wake(self) -> None:
        self._summon()
