"""Damaged files, full disks, killed processes, and many writers on one file."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.errors import MemoryStoreError
from muniment.stores.sqlite import AsyncSQLiteStore

ANA = MemoryOwner("acme", user_id="ana")

_CHILD = """
import asyncio, sys
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.stores.sqlite import AsyncSQLiteStore

ANA = MemoryOwner("acme", user_id="ana")

async def main(path, name):
    async with AsyncSQLiteStore(path) as store:
        print("open", flush=True)
        sys.stdin.readline()
        {body}

asyncio.run(main(*sys.argv[1:]))
"""
_STORE = """
        created = superseded = 0
        for n in range(10):
            fact = Memory(f"{name}-{n}", "user", "fact", ANA, f"fact {n}")
            created += (await store.memories.store_fact(fact)).created
        new = Memory(f"{name}-new", "user", "fact", ANA, f"moved as {name} says")
        superseded += (await store.memories.store_fact(new, supersedes="old")).superseded == "old"
        print(created, superseded)
"""
_FOREVER = """
        n = 0
        while True:
            await store.memories.save(Memory(f"m{n:06}", "user", "fact", ANA, f"fact {n}"))
            print(n, flush=True)
            n += 1
"""


def _fact(memory_id: str, content: str) -> Memory:
    return Memory(memory_id, MemoryScope.USER, MemoryType.FACT, ANA, content)


@contextmanager
def _child(body: str, path: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", _CHILD.replace("{body}", body.strip()), str(path), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def _in_thread(path: Path, name: str, answers: list[tuple[int, int]]) -> None:
    async def work() -> None:
        async with AsyncSQLiteStore(path) as store:
            facts = [_fact(f"{name}-{n}", f"fact {n}") for n in range(10)]
            stored = await asyncio.gather(*map(store.memories.store_fact, facts))
            new = _fact(f"{name}-new", f"moved as {name} says")
            moved = await store.memories.store_fact(new, supersedes="old")
            answers.append((sum(one.created for one in stored), int(moved.superseded == "old")))

    asyncio.run(work())


async def test_threads_and_processes_store_a_fact_once_and_give_one_successor(
    tmp_path: Path,
) -> None:
    """Hazard 15, with no "locked" error: any error would fail a child or leave an answer out."""
    path = tmp_path / "memory.db"
    async with AsyncSQLiteStore(path) as store:
        await store.memories.store_fact(_fact("old", "lives in Rome"))
    answers: list[tuple[int, int]] = []
    with _child(_STORE, path, "p1") as one, _child(_STORE, path, "p2") as two:
        assert [_line(one), _line(two)] == ["open", "open"]
        threads = [
            threading.Thread(target=_in_thread, args=(path, f"t{number}", answers))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        _go(one)
        _go(two)
        for process in (one, two):
            created, superseded = _line(process).split()
            answers.append((int(created), int(superseded)))
        for thread in threads:
            thread.join()
    assert len(answers) == 10
    assert sum(created for created, _ in answers) == 10
    assert sum(superseded for _, superseded in answers) == 1
    async with AsyncSQLiteStore(path) as store:
        live = await store.memories.search(MemoryQuery(ANA, limit=1000))
        assert sorted(m.content for m in live if m.content.startswith("fact")) == sorted(
            f"fact {n}" for n in range(10)
        )
        old = await store.memories.get(ANA, "old")
        assert old is not None
        assert old.superseded_by is not None


async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with _child(_FOREVER, path, "p") as process:
        assert _line(process) == "open"
        _go(process)
        acknowledged = [int(_line(process)) for _ in range(25)]
        process.kill()
        process.wait()
    async with AsyncSQLiteStore(path) as store:
        for number in acknowledged:
            assert await store.memories.get(ANA, f"m{number:06}") is not None
        found = await store.memories.search(MemoryQuery(ANA, text="fact", limit=1000))
        listed = await store.memories.search(MemoryQuery(ANA, limit=1000))
        assert len(found) == len(listed) >= 25


async def test_a_reader_does_not_wait_for_another_connections_write(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_fact("m1", "the zebra sleeps"))
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        assert await store.memories.get(ANA, "m1") is not None
        waiting = asyncio.ensure_future(store.memories.save(_fact("m2", "a tiger")))
        assert await store.memories.get(ANA, "m2") is None
        other.execute("COMMIT")
        other.close()
        await waiting
        assert await store.memories.get(ANA, "m2") is not None


@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 40, b"SQLite"])
async def test_garbage_is_refused_and_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    """Hazard 24."""
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    with pytest.raises(MemoryStoreError):
        await AsyncSQLiteStore(path).open()
    assert path.read_bytes() == content


async def test_a_missing_folder_is_named_as_the_cause(tmp_path: Path) -> None:
    with pytest.raises(MemoryStoreError, match="folder of the database file is not there"):
        await AsyncSQLiteStore(tmp_path / "absent" / "memory.db").open()


async def _fill(store: AsyncSQLiteStore) -> None:
    for number in range(200):
        await store.memories.save(_fact(f"n{number}", "secret-text " * 600))


async def test_a_full_disk_refuses_the_write_and_changes_nothing(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "memory.db") as store:
        await store.memories.save(_fact("m1", "kept"))
        engine = store._core.engine
        pages = await engine.write_async(lambda db: int(db.execute("PRAGMA page_count").get))
        await engine.write_async(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").get)
        with pytest.raises(MemoryStoreError, match="disk is full") as caught:
            await _fill(store)
        assert "secret-text" not in str(caught.value)
        assert await store.memories.get(ANA, "m1") is not None
        await engine.write_async(lambda db: db.execute("PRAGMA max_page_count = 1000000").get)
        await store.memories.save(_fact("m2", "there is room again"))
