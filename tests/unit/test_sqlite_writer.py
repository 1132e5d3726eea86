"""Threads that write lead in turn: answers are their own, whatever befalls whoever leads."""

from __future__ import annotations

import asyncio
import linecache
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

from muniment.errors import MemoryStoreError
from muniment.governance.audit import AuditLog
from muniment.governance.audit_record import AuditEntry
from muniment.stores.sqlite.calls import ThreadCall
from muniment.stores.sqlite.connections import connect, use_write_ahead_log
from muniment.stores.sqlite.engine import Engine
from muniment.stores.sqlite.migrate import migrate
from muniment.stores.sqlite.outbox import Outbox, count
from muniment.stores.sqlite.writer import Writer

_FULL = 2


def _connection(path: Path) -> apsw.Connection:
    made = connect(str(path))
    use_write_ahead_log(made)
    migrate(made)
    return made


def _put(db: apsw.Connection, name: str) -> str:
    db.execute("INSERT INTO setting (name, value) VALUES (?, '')", (name,))
    return name


def _putting(name: str) -> Callable[[apsw.Connection], str]:
    return lambda db: _put(db, name)


def _names(db: apsw.Connection) -> set[str]:
    rows = db.execute("SELECT name FROM setting WHERE value = ''")
    return {str(row[0]) for row in rows}


@contextmanager
def _led_by_another(writer: Writer) -> Iterator[threading.Event]:
    """Somebody leads, with a job that ends when the event is set."""
    begun, go = threading.Event(), threading.Event()

    def wait(_: apsw.Connection) -> None:
        begun.set()
        assert go.wait(30)

    leading = writer.submit(wait)
    assert begun.wait(30)
    try:
        yield go
    finally:
        go.set()
        leading.result(30)


@contextmanager
def _parking(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Released by every thread that begins to wait for its call."""
    parked, wait = threading.Semaphore(0), ThreadCall.wait

    def waiting(call: ThreadCall) -> None:
        parked.release()
        wait(call)

    with monkeypatch.context() as patched:
        patched.setattr(ThreadCall, "wait", waiting)
        yield parked


def test_every_thread_gets_the_answer_of_its_own_job(tmp_path: Path) -> None:
    writer = Writer(_connection(tmp_path / "memory.db"))

    def work(number: int) -> bool:
        names = [f"{number} {step}" for step in range(50)]
        return [writer.run(_putting(name)) for name in names] == names

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
    assert len(writer.run(_names)) == 400
    writer.close()


def test_threads_that_wait_together_share_a_commit_and_a_failure_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(_connection(tmp_path / "memory.db"))

    def fail(db: apsw.Connection) -> None:
        _put(db, "undone")
        raise ValueError("its own")

    with ThreadPoolExecutor(8) as threads, _parking(monkeypatch) as parked:
        with _led_by_another(writer):
            before = writer.commits
            good = [threads.submit(writer.run, _putting(f"n{n}")) for n in range(6)]
            bad = threads.submit(writer.run, fail)
            for _ in range(7):
                assert parked.acquire(timeout=30)
        assert [each.result(30) for each in good] == [f"n{n}" for n in range(6)]
        with pytest.raises(ValueError, match="its own"):
            bad.result(30)
    assert writer.commits == before + 2
    assert writer.run(_names) == {f"n{n}" for n in range(6)}
    writer.close()


def test_a_job_that_fails_alone_changes_nothing(tmp_path: Path) -> None:
    writer = Writer(_connection(tmp_path / "memory.db"))
    with pytest.raises(MemoryStoreError, match="ConstraintError"):
        writer.run(lambda db: [_put(db, name) for name in ("a", "b", "a")])
    assert writer.run(_names) == set()
    assert writer.run(_putting("after")) == "after"
    writer.close()


def test_closing_waits_for_whoever_leads_and_for_those_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(_connection(tmp_path / "memory.db"))
    with ThreadPoolExecutor(3) as threads, _parking(monkeypatch) as parked:
        with _led_by_another(writer):
            written = threads.submit(writer.run, _putting("behind"))
            assert parked.acquire(timeout=30)
            closing = [threads.submit(writer.close) for _ in range(2)]
            for _ in closing:
                assert parked.acquire(timeout=30)
            with pytest.raises(MemoryStoreError, match="closed"):
                writer.run(_names)
            assert not written.done()
        assert written.result(30) == "behind"
        for each in closing:
            each.result(30)
    with pytest.raises(MemoryStoreError, match="closed"):
        writer.submit(_names)
    again = _connection(tmp_path / "memory.db")
    assert _names(again) == {"behind"}
    again.close()


def test_an_interrupted_leader_loses_its_own_job_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(_connection(tmp_path / "memory.db"))

    def interrupted(db: apsw.Connection) -> None:
        _put(db, "lost")
        raise KeyboardInterrupt

    with ThreadPoolExecutor(4) as threads, _parking(monkeypatch) as parked:
        with _led_by_another(writer):
            leader = threads.submit(writer.run, interrupted)
            assert parked.acquire(timeout=30)
            others = [threads.submit(writer.run, _putting(f"n{n}")) for n in range(3)]
            for _ in others:
                assert parked.acquire(timeout=30)
        assert [each.result(30) for each in others] == ["n0", "n1", "n2"]
        with pytest.raises(KeyboardInterrupt):
            leader.result(30)
    assert writer.run(_names) == {"n0", "n1", "n2"}
    writer.close()


def _fail(db: apsw.Connection) -> str:
    return _put(db, str(1 // 0))


class _InterruptAt:
    """A trace that interrupts its thread before the given line of the files, counted from 0.

    Lines of `with` are passed over: they are come to again on the way out, where a trace would
    keep the lock from being released and an interrupt does not.
    """

    def __init__(self, line: int) -> None:
        self.left = line
        self.reached = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(("writer.py", "calls.py", "outbox.py")):
            return None
        here = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not self.reached and not here.strip().startswith("with "):
            if self.left == 0:
                self.reached = True
                raise KeyboardInterrupt
            self.left -= 1
        return self


def _interrupted(trace: _InterruptAt, call: Callable[[], str]) -> str | None:
    """What `call` answers in this thread, None where the trace interrupted it."""
    sys.settrace(trace)
    try:
        return call()
    except KeyboardInterrupt:
        return None
    finally:
        sys.settrace(None)


def _one_round(
    writer: Writer, trace: _InterruptAt, job: Callable[[str], Callable[[apsw.Connection], str]]
) -> tuple[str | None, list[Future[str]]]:
    """One thread that is interrupted somewhere leads the jobs of others, one of which fails; its
    answer, and theirs."""
    name = f"own {trace.left}"
    with ThreadPoolExecutor(1) as threads, pytest.MonkeyPatch.context() as patched:
        with _parking(patched) as parked, _led_by_another(writer):
            own = threads.submit(_interrupted, trace, lambda: writer.run(job(name)))
            own.add_done_callback(lambda _: parked.release())
            assert parked.acquire(timeout=30)
            first, failing, last = (
                writer.submit(each) for each in (job(f"{name} 0"), _fail, job(f"{name} 1"))
            )
        assert isinstance(failing.exception(30), ZeroDivisionError)
        return own.result(30), [first, last]


@pytest.mark.parametrize("audited", [False, True])
def test_an_interrupt_at_any_line_loses_nothing_of_others(tmp_path: Path, audited: bool) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", fsync=False)
    outbox = Outbox(log) if audited else None
    connection = _connection(tmp_path / "memory.db")
    connection.execute("PRAGMA synchronous = FULL")
    writer, expected, line = Writer(connection, outbox), set[str](), 0

    def job(name: str) -> Callable[[apsw.Connection], str]:
        def run(db: apsw.Connection) -> str:
            if outbox is not None:
                outbox.put(db, AuditEntry(f"{name}", "2026-01-01", "noted", None, {}))
            return _put(db, name)

        return run

    while True:
        trace = _InterruptAt(line)
        answer, others = _one_round(writer, trace, job)
        expected |= {future.result(30) for future in others}
        stored = writer.run(_names)
        if answer is not None:
            expected.add(answer)
        assert stored - {f"own {line}"} == expected - {f"own {line}"}
        assert answer is None or answer in stored
        assert writer.run(lambda db: db.execute("PRAGMA synchronous").get, apart=True) == _FULL
        expected, line = stored, line + 1
        if not trace.reached:
            break
    assert line > 40
    if outbox is not None:
        assert writer.run(outbox.drain, apart=True)
        assert writer.run(count) == 0
        assert log.verify(expected_count=len(expected)).ok
    writer.close()


async def test_a_loop_is_not_blocked_by_a_thread_that_leads(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "memory.db")
    with _led_by_another(engine.open()):
        writing = asyncio.ensure_future(engine.write_async(_putting("patient")))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not writing.done()
    assert await writing == "patient"
    await asyncio.to_thread(engine.close)
