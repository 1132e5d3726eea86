"""The engine: connections, the shared commit, and reads that can be stopped."""

from __future__ import annotations

import asyncio
import stat
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError as NeverStarted
from pathlib import Path

import apsw
import pytest

from muniment.errors import MemoryConfigurationError, MemoryStoreError
from muniment.stores.sqlite.connections import connect
from muniment.stores.sqlite.engine import Engine
from muniment.stores.sqlite.writer import Writer

_ENDLESS = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
SELECT count(*) FROM n"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = Engine(tmp_path / "memory.db")
    await made.open_async()
    yield made
    made.close()


def _put(db: apsw.Connection, name: str) -> None:
    db.execute("INSERT INTO setting (name, value) VALUES (?, '')", (name,))


def _names(db: apsw.Connection) -> list[str]:
    written = "SELECT name FROM setting WHERE name != 'cursor_secret' ORDER BY name"
    return [row[0] for row in db.execute(written)]


def _modes(folder: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()]


async def test_the_file_and_its_journals_are_private(engine: Engine, tmp_path: Path) -> None:
    await engine.write_async(lambda db: _put(db, "a"))
    assert _modes(tmp_path) == [0o600] * 3


async def test_every_setting_holds_on_every_connection(engine: Engine) -> None:
    expected = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "secure_delete": 1,
        "trusted_schema": 0,
    }

    def settings(db: apsw.Connection) -> dict[str, object]:
        return {name: db.execute(f"PRAGMA {name}").get for name in expected}

    assert await engine.read_async(settings) == expected
    assert await engine.write_async(settings) == expected


def test_an_unknown_level_of_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MemoryConfigurationError, match="synchronous"):
        Engine(tmp_path / "memory.db", synchronous="OFF")


async def test_a_failing_job_undoes_only_itself(engine: Engine) -> None:
    def fails(db: apsw.Connection) -> None:
        _put(db, "lost")
        raise ValueError("no")

    jobs = [lambda db: _put(db, "a"), fails, lambda db: _put(db, "b"), lambda db: _put(db, "a")]
    answers = await asyncio.gather(
        *(engine.write_async(job) for job in jobs), return_exceptions=True
    )
    assert [type(answer).__name__ for answer in answers] == [
        "NoneType",
        "ValueError",
        "NoneType",
        "MemoryStoreError",
    ]
    assert await engine.read_async(_names) == ["a", "b"]


def _blocked_writer(path: Path) -> tuple[Writer, threading.Event]:
    """A writer that is busy until the event is set."""
    connection = connect(str(path))
    connection.execute("CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT)")
    writer, begun, go = Writer(connection), threading.Event(), threading.Event()

    def wait(_: apsw.Connection) -> None:
        begun.set()
        go.wait(30)

    writer.submit(wait)
    assert begun.wait(30)
    return writer, go


def test_writes_that_wait_together_share_one_commit(tmp_path: Path) -> None:
    writer, go = _blocked_writer(tmp_path / "memory.db")
    futures = [writer.submit(lambda db, n=n: _put(db, f"n{n}")) for n in range(100)]
    go.set()
    for future in futures:
        future.result(30)
    assert writer.commits == 2
    writer.close()


def test_a_write_that_was_cancelled_while_it_waited_is_not_made(tmp_path: Path) -> None:
    writer, go = _blocked_writer(tmp_path / "memory.db")
    cancelled = writer.submit(lambda db: _put(db, "never"))
    assert cancelled.cancel()
    kept = writer.submit(lambda db: _put(db, "kept"))
    go.set()
    kept.result(30)
    with pytest.raises(NeverStarted):
        cancelled.result(30)
    assert writer.submit(_names).result(30) == ["kept"]
    writer.close()


async def test_a_timed_out_read_is_interrupted_and_the_next_ones_answer(engine: Engine) -> None:
    for _ in range(6):  # more than there are readers: an abandoned read would block its thread
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await engine.read_async(lambda db: db.execute(_ENDLESS).get)
    async with asyncio.timeout(30):
        assert await engine.read_async(lambda db: db.execute("SELECT 1").get) == 1


async def test_a_kept_statement_is_planned_once_whatever_its_limit(engine: Engine) -> None:
    def planned(db: apsw.Connection) -> int:
        return db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)

    assert await engine.read_async(planned) == 1
    assert await engine.write_async(planned) == 1


async def test_a_read_that_was_cancelled_while_it_waited_is_not_made(engine: Engine) -> None:
    go, made = threading.Event(), list[str]()
    filling = [
        asyncio.ensure_future(engine.read_async(lambda _: go.wait(30))) for _ in range(4)
    ]  # as many as there are threads
    waiting = asyncio.ensure_future(engine.read_async(lambda _: made.append("cancelled")))
    last = asyncio.ensure_future(engine.read_async(lambda _: made.append("kept")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    await asyncio.gather(*filling, last)
    assert made == ["kept"]


def test_a_read_outlives_the_loop_that_asked_for_it_and_the_next_is_answered(
    tmp_path: Path,
) -> None:
    engine = Engine(tmp_path / "memory.db")
    begun, go = threading.Event(), threading.Event()

    def slow(_: apsw.Connection) -> None:
        begun.set()
        go.wait(30)

    async def leave() -> None:
        reading = asyncio.ensure_future(engine.read_async(slow))
        assert await asyncio.to_thread(begun.wait, 30)
        reading.cancel()

    asyncio.run(leave())
    go.set()
    assert asyncio.run(asyncio.wait_for(engine.read_async(_names), 30)) == []
    engine.close()


async def test_a_read_sees_one_snapshot(engine: Engine) -> None:
    begun, go = threading.Event(), threading.Event()

    def twice(db: apsw.Connection) -> tuple[list[str], list[str]]:
        before = _names(db)
        begun.set()
        go.wait(30)
        return before, _names(db)

    reading = asyncio.ensure_future(engine.read_async(twice))
    assert await asyncio.to_thread(begun.wait, 30)
    await engine.write_async(lambda db: _put(db, "later"))
    go.set()
    assert await reading == ([], [])


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "memory.db")
    await engine.write_async(lambda db: _put(db, "a"))
    engine.close()
    engine.close()
    for call in (engine.read_async, engine.write_async):
        with pytest.raises(MemoryStoreError, match="closed"):
            await call(_names)


async def test_closing_finishes_what_is_queued(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "memory.db")
    writer = engine.open()
    waiting = [writer.submit(lambda db, n=n: _put(db, f"n{n}")) for n in range(20)]
    engine.close()
    assert all(future.done() for future in waiting)
    again = Engine(tmp_path / "memory.db")
    assert len(await again.read_async(_names)) == 20
    again.close()


async def test_a_statement_left_open_never_makes_later_reads_stale(engine: Engine) -> None:
    kept: list[apsw.Cursor] = []

    def careless(db: apsw.Connection) -> None:
        kept.append(db.execute("SELECT name FROM setting UNION ALL SELECT 'more'"))
        kept[0].fetchone()

    await engine.read_async(careless)
    await engine.write_async(lambda db: _put(db, "later"))
    assert await engine.read_async(_names) == ["later"]


async def test_a_key_that_is_refused_later_fails_its_read_and_the_next_is_answered(
    tmp_path: Path,
) -> None:
    answers: list[str | None] = ["k"]  # for the connection that writes

    def key() -> str:
        answer = answers.pop(0)
        if answer is None:
            raise LookupError("the vault is closed")
        return answer

    engine = Engine(tmp_path / "memory.db", encryption_key=key)
    await engine.open_async()
    answers += [None, "k"]
    with pytest.raises(LookupError, match="vault"):
        await engine.read_async(lambda db: db.execute("SELECT 1").get)
    assert await engine.read_async(lambda db: db.execute("SELECT 1").get) == 1
    engine.close()


async def test_without_a_thread_to_spare_calls_fail_and_are_made_once_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tmp_path / "memory.db")
    await engine.open_async()

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        with pytest.raises(MemoryStoreError, match="no further thread"):
            await engine.read_async(lambda db: db.execute("SELECT 1").get)
        with pytest.raises(MemoryStoreError, match="no further thread"):
            await engine.write_async(lambda db: db.execute("SELECT 1").get)
    assert await engine.write_async(lambda db: db.execute("SELECT 2").get) == 2
    assert await engine.read_async(lambda db: db.execute("SELECT 3").get) == 3
    engine.close()
