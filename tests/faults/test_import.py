"""Imports that fail, are killed, are large, or meet an erasure on their way."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    AsyncSQLiteStore,
    ImportResult,
    InvalidEntryError,
    MemoryStoreError,
    QuotaExceededError,
    Scope,
    SQLiteStore,
)
from muniment.stores.sqlite import staging
from muniment.testing import ManualClock
from tests.faults.test_erased_bytes import Words

ANA = Scope("acme", subject="ana")


def _lines(
    count: int, text: str = "zebra number {}", promised: int | None = None
) -> Iterator[bytes]:
    head = {"format": "muniment-entries", "version": 1, "count": promised or count}
    yield json.dumps(head).encode() + b"\n"
    for number in range(count):
        entry = {
            "scope": ANA.key,
            "kind": "fact",
            "text": text.format(number % 500),
            "trust": "model",
        }
        yield json.dumps(entry).encode() + b"\n"


class Stream(io.RawIOBase):
    """Lines made while they are read; `before` is called with each line's number, from 1."""

    def __init__(self, lines: Iterator[bytes], before: Any = None) -> None:
        self._lines = lines
        self._before = before
        self._number = 0

    def readline(self, _most: int | None = -1, /) -> bytes:
        self._number += 1
        if self._before is not None:
            self._before(self._number)
        return next(self._lines, b"")


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks: list[int] = []
    for count in (1_000, 2_000, 6_000):
        with SQLiteStore(tmp_path / f"{count}.db", synchronous="NORMAL") as store:
            store.add(ANA, "warm")
            tracemalloc.start()
            result = store.import_stream(ANA, Stream(_lines(count)))  # type: ignore[arg-type]
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert result.imported == count
    assert peaks[2] < 1.2 * peaks[1] < 8_000_000, peaks


def test_other_writers_and_readers_go_on_and_see_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store, SQLiteStore(path) as other:

        def meanwhile(number: int) -> None:
            if number in (700, 1_400):
                other.add(ANA, f"written at {number}")
                assert other.search(ANA, "zebra") == []

        given = Stream(_lines(1_500), meanwhile)
        assert store.import_stream(ANA, given).imported == 1_500  # type: ignore[arg-type]
        assert other.count(ANA) == 1_502
        assert len(other.search(ANA, "zebra", k=50)) == 50


def test_an_import_that_ends_leaves_what_others_have_staged(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store, SQLiteStore(path) as other:

        def meanwhile(number: int) -> None:
            if number == 1_200:
                given = Stream(_lines(2, "lion number {}"))
                assert other.import_stream(ANA, given).imported == 2  # type: ignore[arg-type]
                with pytest.raises(InvalidEntryError):
                    other.import_stream(ANA, Stream(_lines(2, promised=3)))  # type: ignore[arg-type]

        assert store.import_stream(ANA, Stream(_lines(1_500), meanwhile)).imported == 1_500  # type: ignore[arg-type]
        assert other.count(ANA) == 1_502


def test_an_erasure_meanwhile_stops_the_import_and_leaves_nothing(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store, SQLiteStore(tmp_path / "memory.db") as other:

        def meanwhile(number: int) -> None:
            if number == 1_200:
                other.erase(Scope("acme"))

        with pytest.raises(MemoryStoreError, match="erased meanwhile"):
            store.import_stream(ANA, Stream(_lines(1_500), meanwhile))  # type: ignore[arg-type]
        assert store.count(ANA) == 0


def test_a_failed_import_leaves_no_word_in_any_file(tmp_path: Path) -> None:
    words = Words()
    word = words.one()
    path = tmp_path / "memory.db"
    with SQLiteStore(path, quota_entries=1_000) as store:
        store.add(ANA, "stays")
        with pytest.raises(InvalidEntryError, match="line 1202"):
            store.import_stream(ANA, Stream(_lines(1_200, f"{word} {{}}", 1_300)))  # type: ignore[arg-type]
        with pytest.raises(QuotaExceededError):
            store.import_stream(ANA, Stream(_lines(1_200, f"{word} {{}}")))  # type: ignore[arg-type]
        assert words.left(tmp_path) == []
        assert store.count(ANA) == 1
        assert [hit.entry.text for hit in store.search(ANA, "stays")] == ["stays"]


def test_what_a_killed_import_left_goes_when_the_file_is_opened_later(tmp_path: Path) -> None:
    path, words = tmp_path / "memory.db", Words()
    _kill_in_import(path, words.one())
    assert words.left(tmp_path) != []
    clock = ManualClock()
    with SQLiteStore(path, clock=clock) as store:
        assert store.count(ANA) == 0
        assert store.search(ANA, words.made["ana"][0]) == []
        assert words.left(tmp_path) != []  # it may still be under way elsewhere
        assert store.erase(ANA).entries == 0
        assert words.left(tmp_path) == []
    _kill_in_import(path, words.one())
    clock.move(minutes=staging.STALE / timedelta(minutes=1) + 1)
    with SQLiteStore(path, clock=clock) as store:
        assert words.left(tmp_path) == []
        assert store.import_stream(ANA, Stream(_lines(3))) == ImportResult(3, 0, 0)  # type: ignore[arg-type]


_KILLED = """
import os, signal, sys
from muniment import SQLiteStore
from muniment.testing import ManualClock
from tests.faults.test_import import ANA, Stream, _lines

def meanwhile(number):
    if number == 1200:
        os.kill(os.getpid(), signal.SIGKILL)

store = SQLiteStore(sys.argv[1], clock=ManualClock())
store.import_stream(ANA, Stream(_lines(1500, sys.argv[2] + " {}"), meanwhile))
"""


def _kill_in_import(path: Path, word: str) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", _KILLED, str(path), word],
        env={"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": ""},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]


async def test_a_cancelled_import_stores_nothing(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "memory.db") as store:
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def meanwhile(number: int) -> None:
            if number == 600:
                loop.call_soon_threadsafe(started.set)

        given: Any = Stream(_lines(20_000), meanwhile)
        task = asyncio.create_task(store.entries.import_stream(ANA, given))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.count(ANA) == 0
        again: Any = Stream(_lines(2))
        assert (await store.entries.import_stream(ANA, again)).imported == 2
