"""Erasing while others write, and killed before the bytes are gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from muniment import AsyncSQLiteStore, Scope
from tests.faults.test_erased_bytes import REALM, Words, write_everything

ROOT = Path(__file__).parents[2]
ROUNDS = 12

_WRITER = """
import asyncio, sys
from muniment import AsyncSQLiteStore, Memory, MemoryOwner, MemoryScope, MemoryType
async def main(path, name, rounds):
    owner = MemoryOwner("acme", user_id="ana")
    async with AsyncSQLiteStore(path) as store:
        for number in range(rounds):
            text = f"{name} {number} " + "word " * 200
            row = Memory(f"{name}{number}", MemoryScope.USER, MemoryType.FACT, owner, text)
            await store.memories.save(row)
    print(rounds)
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""

_ERASER = """
import asyncio, sys
from muniment import AsyncSQLiteStore, Scope
async def main(path, rounds):
    gone = 0
    async with AsyncSQLiteStore(path) as store:
        for _ in range(rounds):
            gone += (await store.erase(Scope("acme", subject="ana"))).entries
    print(gone)
asyncio.run(main(sys.argv[1], int(sys.argv[3])))
"""

_KILLED = """
import asyncio, os, sys
from muniment import AsyncSQLiteStore, Scope
from muniment.stores.sqlite import store as home
home.settle = lambda db: os._exit(9)
async def main(path):
    await (await AsyncSQLiteStore(path).open()).erase(Scope("acme", subject="ana"))
asyncio.run(main(sys.argv[1]))
"""


def _child(code: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code, str(path), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def _together(path: Path) -> list[int]:
    """What each of two writers and two erasers says it did."""
    children = [
        _child(code, path, name, str(ROUNDS))
        for code, name in ((_WRITER, "a"), (_WRITER, "b"), (_ERASER, "x"), (_ERASER, "y"))
    ]
    return [int(child.communicate(timeout=120)[0]) for child in children]


async def test_processes_that_write_and_erase_together_lose_and_count_nothing_twice(
    tmp_path: Path,
) -> None:
    """Hazard 15."""
    path = tmp_path / "m.db"
    async with AsyncSQLiteStore(path):
        pass  # the file is there before they begin
    first, second, gone, more = _together(path)
    async with AsyncSQLiteStore(path) as store:
        assert first + second == gone + more + await store.count(Scope("acme"))
        await store.erase(REALM)
        assert await store.count(Scope("acme")) == 0
        assert b"word word" not in path.read_bytes()


def _killed_while_erasing(path: Path) -> int:
    child = _child(_KILLED, path)
    child.communicate(timeout=60)
    return child.returncode


async def test_killed_between_the_rows_and_the_bytes_the_next_opening_completes_it(
    tmp_path: Path,
) -> None:
    words, path = Words(), tmp_path / "m.db"
    store = await AsyncSQLiteStore(path).open()
    await write_everything(store, words)
    assert _killed_while_erasing(path) == 9
    assert words.left(tmp_path) != []
    assert await store.count(REALM) == 0
    async with AsyncSQLiteStore(path):
        pass
    assert words.left(tmp_path) == []
    await store.aclose()
