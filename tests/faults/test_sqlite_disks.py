"""Many processes on one file, disks that fill up, files that may not be written, damaged pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from benchmarks.faults.agreement import disagreements
from muniment.domain.conversation import ConversationIdentity
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.errors import MemoryStoreError
from muniment.stores.sqlite import AsyncSQLiteStore

ANA = MemoryOwner("acme", user_id="ana")
TALK = ConversationIdentity("acme", "ana", "s1", "ana")

_HEAD = """
import asyncio, os, resource, signal, sys
from datetime import UTC, datetime
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.realm import Scope
from muniment.errors import MemoryStoreError
from muniment.stores.sqlite import AsyncSQLiteStore

ANA = MemoryOwner("acme", user_id="ana")
TALK = ConversationIdentity("acme", "ana", "s1", "ana")
NOW = datetime(2026, 3, 10, tzinfo=UTC)

def fact(name, content="fact"):
    return Memory(name, "user", "fact", ANA, content)

async def refused(work):
    try:
        await work
    except MemoryStoreError as error:
        return str(error)
    return "not refused"

async def main(path, name):
"""
_MANY = """
    async with AsyncSQLiteStore(path, audit=path + ".audit") as store:
        for n in range(10):
            message = ConversationMessage(f"{name}-{n}", "user", f"says {n}", NOW)
            await store.conversations.append_messages(TALK, [message])
            await store.memories.save(fact(f"{name}-{n}", f"fact {name} {n}"))
            await store.memories.save(fact("shared", f"last written by {name}"))
"""
_FULL = """
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(fact("before"))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = 1 << 20
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        async def fill():
            for n in range(400):
                await store.memories.save(fact(f"n{n}", "secret-text " * 600))
        print(await refused(fill()))
        print((await store.memories.get(ANA, "before")).content)
        print(len(await store.memories.search(MemoryQuery(ANA, limit=1000))))
        print((await store.erase(Scope("acme"))).entries > 0)
        print(await refused(store.memories.save(fact("after"))))
"""
_READ_ONLY = """
    async with AsyncSQLiteStore(path) as store:
        print((await store.memories.get(ANA, "before")).content)
        found = await store.memories.search(MemoryQuery(ANA, text="zebra"))
        print(len(found))
        print(await refused(store.memories.save(fact("after"))))
        print(await refused(store.erase(Scope("acme"))))
        print(await store.count(Scope("acme")))
        print(len(await store.entries.search(Scope("acme"), "zebra")))
    print("closed")
"""
# Root may write whatever the file's mode says. Everything is imported before, while it may be.
_AS_NOBODY = """
async def warm():
    async with AsyncSQLiteStore() as store:
        await store.memories.save(fact("before"))
        await store.memories.search(MemoryQuery(ANA, text="zebra"))
        await store.erase(Scope("acme"))
asyncio.run(warm())
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
"""


def _child(body: str, path: Path, name: str = "p", *, before: str = "") -> subprocess.Popen[str]:
    script = f"{_HEAD}{body}\n{before}\nasyncio.run(main(*sys.argv[1:]))"
    return subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", script, str(path), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _said(process: subprocess.Popen[str]) -> list[str]:
    with process:
        out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return out.splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def _fact(name: str, content: str) -> Memory:
    return Memory(name, MemoryScope.USER, MemoryType.FACT, ANA, content)


async def test_eight_processes_on_one_file_lose_no_write_and_see_no_lock(path: Path) -> None:
    """Hazard 15; all of them with one audit log."""
    children = [_child(_MANY, path, f"p{number}") for number in range(8)]
    for child in children:
        _said(child)
    log = Path(f"{path}.audit")
    async with AsyncSQLiteStore(path, audit=log) as store:
        messages = await store.conversations.recent_messages(TALK, limit=1000)
        assert len({message.message_id for message in messages}) == len(messages) == 80
        found = await store.memories.search(MemoryQuery(ANA, limit=1000))
        assert len(found) == 81
        shared = await store.memories.get(ANA, "shared")
        assert shared is not None
        assert shared.content.startswith("last written by p")
    assert disagreements(path, log) == []


async def test_a_disk_that_fills_up_refuses_writes_keeps_the_old_and_lets_erase(
    path: Path,
) -> None:
    refused, before, kept, erased, _ = _said(_child(_FULL, path))
    assert refused in (
        "the disk is full; nothing was changed",
        "the disk failed at the database file; check its room, quota and health",
    )
    assert before == "fact"
    assert int(kept) >= 1
    assert erased == "True"
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_fact("later", "there is room again"))
        assert await store.count(Scope("acme")) in (1, 2)
    assert apsw.Connection(str(path)).execute("PRAGMA integrity_check").get == "ok"


async def test_a_read_only_file_can_be_read_and_says_so_to_a_write(path: Path) -> None:
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_fact("before", "the zebra sleeps"))
    _lock_away(path)
    said = _said(_child(_READ_ONLY, path, before=_AS_NOBODY))
    before, found, refused, not_erased, count, served, closed = said
    assert (before, found, count, served) == ("the zebra sleeps", "1", "1", "1")
    assert closed == "closed"  # what that search served could not be noted: no reason to fail
    assert refused.startswith("the database file is read-only; nothing was changed: this user")
    assert not_erased == refused


async def test_a_damaged_page_is_named_and_what_can_be_read_is_read(path: Path) -> None:
    """Hazard 24."""
    async with AsyncSQLiteStore(path) as store:
        for number in range(50):
            await store.memories.save(_fact(f"n{number}", "the zebra sleeps " * 100))
    _overwrite(path)
    async with AsyncSQLiteStore(path) as store:
        with pytest.raises(MemoryStoreError, match=r"damaged|reports") as caught:
            await store.memories.search(MemoryQuery(ANA, limit=1000))
        assert "zebra" not in str(caught.value)
        assert await store.conversations.recent_messages(TALK, limit=5) == ()


def _lock_away(path: Path) -> None:
    path.chmod(0o444)
    for folder in (path.parent, *path.parents[1:4]):
        folder.chmod(folder.stat().st_mode | 0o005)
    path.parent.chmod(0o777)


def _overwrite(path: Path) -> None:
    size = int(apsw.Connection(str(path)).execute("PRAGMA page_size").get)
    content = bytearray(path.read_bytes())
    for start in range(size, len(content), size):
        if b"zebra" in content[start : start + size]:
            content[start : start + 64] = b"\xff" * 64
    path.write_bytes(content)
