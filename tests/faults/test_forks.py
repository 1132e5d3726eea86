"""A process that has a store open is forked: both go on, and neither loses what it acknowledged."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from benchmarks.faults.agreement import disagreements
from muniment import AsyncSQLiteStore, MemoryStoreError, Scope, SQLiteStore
from muniment.stores.postgres import PostgresStore
from tests.servers.databases import DATABASES

ANN = Scope("acme", subject="ann")
_SECONDS = 60  # then a child that hangs is ended


class Child:
    """A process forked off to run `work`."""

    def __init__(self, work: Callable[[], object]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that threads are running
            self._pid = os.fork()
        if self._pid == 0:
            signal.alarm(_SECONDS)
            self._run(work)

    @staticmethod
    def _run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def ended_well(self) -> bool:
        return os.waitpid(self._pid, 0)[1] == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(path) as opened:
        opened.add(ANN, "before the fork")
        yield opened


def test_what_a_child_stores_outlives_the_parents_closing(path: Path) -> None:
    parents = SQLiteStore(path)
    parents.add(ANN, "before the fork")
    opened_read, opened_write = os.pipe()
    closed_read, closed_write = os.pipe()

    def work() -> None:
        with SQLiteStore(path) as own:
            assert own.count(ANN) == 1
            os.write(opened_write, b".")
            os.read(closed_read, 1)
            own.add(ANN, "after the parent's closing")

    child = Child(work)
    os.read(opened_read, 1)
    parents.close()
    os.write(closed_write, b".")
    assert child.ended_well()
    with SQLiteStore(path) as again:
        assert [entry["text"] for entry in again.export(ANN)] == [
            "before the fork",
            "after the parent's closing",
        ]
    for end in (opened_read, opened_write, closed_read, closed_write):
        os.close(end)


def test_an_inherited_store_is_used_by_both(store: SQLiteStore) -> None:
    def work() -> None:
        store.add(ANN, "the child's tea")
        assert [hit.entry.text for hit in store.search(ANN, "child")] == ["the child's tea"]

    assert Child(work).ended_well()
    store.add(ANN, "the parent's tea")
    assert store.count(ANN) == 3
    assert [hit.entry.text for hit in store.search(ANN, "child")] == ["the child's tea"]


def test_an_inherited_store_is_used_by_another_event_loop(path: Path) -> None:
    store = AsyncSQLiteStore(path)

    async def add(text: str) -> int:
        await store.entries.add(ANN, text)
        return await store.count(ANN)

    def work() -> None:
        assert asyncio.run(add("the child's")) == 2

    assert asyncio.run(add("before the fork")) == 1
    assert Child(work).ended_well()
    assert asyncio.run(add("the parent's")) == 3
    asyncio.run(store.aclose())


def test_a_child_has_a_copy_of_a_store_in_memory() -> None:
    with SQLiteStore() as store:
        store.add(ANN, "before the fork")

        def work() -> None:
            store.add(ANN, "the child's")
            assert store.count(ANN) == 2

        assert Child(work).ended_well()
        assert store.count(ANN) == 1


def test_forks_amid_writing_threads_lose_and_double_nothing(tmp_path: Path, path: Path) -> None:
    log, ended, written = tmp_path / "audit.jsonl", threading.Event(), list[int]()
    with SQLiteStore(path, audit=log) as store:

        def write(name: int) -> None:
            count = 0
            while not ended.is_set():
                store.add(ANN, f"thread {name} says {count}")
                count += 1
            written.append(count)

        def work() -> None:
            for count in range(3):
                store.add(ANN, f"child {os.getpid()} says {count}")

        threads = [threading.Thread(target=write, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        children = [Child(work) for _ in range(6)]
        endings = [child.ended_well() for child in children]
        assert all(endings)
        ended.set()
        for thread in threads:
            thread.join()
        assert store.count(ANN) == sum(written) + 6 * 3
    assert disagreements(path, log) == []


def test_a_search_before_the_fork_is_counted_once(path: Path) -> None:
    with SQLiteStore(path) as store:
        store.add(ANN, "a search is counted")
        store.search(ANN, "counted")
        assert Child(lambda: store.add(ANN, "and with a write stored")).ended_well()
        assert store.usage(ANN).searches == 1


def test_a_file_that_is_not_there_after_a_fork_is_named_and_used_once_it_is_back(
    store: SQLiteStore, path: Path
) -> None:
    away = path.with_name("away")

    def move() -> None:
        path.rename(away)
        path.mkdir()

    assert Child(move).ended_well()
    with pytest.raises(MemoryStoreError, match="moved, removed or replaced"):
        store.add(ANN, "into a folder")
    path.rmdir()
    away.rename(path)
    store.add(ANN, "it is back")
    assert store.count(ANN) == 2


def test_a_store_is_read_and_written_after_a_fork_that_left_it_alone(store: SQLiteStore) -> None:
    for number in range(2):
        store.add(ANN, f"entry {number}")
        assert Child(lambda: None).ended_well()
        assert store.count(ANN) == number + 2  # with the one before


class _Embedder:
    async def __call__(self, text: str) -> Sequence[float]:
        await asyncio.sleep(0)
        return [1.0, float(len(text))]


def test_the_event_loop_of_an_embedder_is_begun_anew(path: Path) -> None:
    with SQLiteStore(path, embedder=_Embedder()) as store:
        store.add(ANN, "before the fork")
        assert Child(lambda: store.add(ANN, "the child's")).ended_well()
        assert len(store.search(ANN, "before or child's")) == 2


async def test_a_child_takes_connections_of_its_own_to_postgresql() -> None:
    async with PostgresStore(DATABASES.lend()) as store:
        await store.entries.add(ANN, "before the fork")

        async def add() -> None:
            await store.entries.add(ANN, "the child's")
            await store.aclose()

        def work() -> None:
            asyncio.events._set_running_loop(None)
            asyncio.run(add())

        assert Child(work).ended_well()
        assert await store.count(ANN) == 2


def test_nothing_is_wrong_with_a_file_after_many_forks(store: SQLiteStore, path: Path) -> None:
    for number in range(5):
        assert Child(lambda number=number: store.add(ANN, f"child {number}")).ended_well()
    store.close()
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA integrity_check").get == "ok"
    assert db.execute("SELECT count(*) FROM memory").get == 6
    db.close()
