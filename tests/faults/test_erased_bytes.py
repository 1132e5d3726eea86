"""Hazard 7: what was erased is in no byte of any file, or the erasure says that it waits."""

from __future__ import annotations

import random
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    AsyncSQLiteStore,
    ConversationIdentity,
    ConversationMessage,
    InvalidEntryError,
    Memory,
    MemoryOwner,
    MemoryScope,
    MemoryStoreError,
    MemoryType,
    QuotaExceededError,
    Scope,
)
from muniment.stores.sqlite import journal
from muniment.testing import ManualClock

REALM = Scope("acme", subject="ana")


class Words:
    """Random lower-cased words: an index keeps words, so each is looked for by itself."""

    def __init__(self) -> None:
        self.made: dict[str, list[str]] = {}

    def one(self, user: str = "ana") -> str:
        word = f"{secrets.token_hex(4)}zq{secrets.token_hex(4)}"
        self.made.setdefault(user, []).append(word)
        return word

    def left(self, folder: Path, user: str = "ana") -> list[str]:
        found = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file()).lower()
        return [word for word in self.made[user] if word.encode() in found]


def person(user: str = "ana", **more: Any) -> MemoryOwner:
    fields = {"session_id": "s1", "run_id": "r1", **more}
    return MemoryOwner("acme", user_id=user, principal_id=user, **fields)


def fact(words: Words, user: str = "ana", **fields: Any) -> Memory:
    text = f"Said: {words.one(user).upper()} and {words.one(user)}."
    fields.setdefault("metadata", {words.one(user): [words.one(user)]})
    scope = fields.pop("scope", MemoryScope.USER)
    name = fields.pop("memory_id", secrets.token_hex(4))
    return Memory(name, scope, MemoryType.FACT, person(user), text, **fields)


async def write_everything(store: AsyncSQLiteStore, words: Words, user: str = "ana") -> None:
    """A word in every place that a user's words get into."""
    owner = person(user)
    talk = ConversationIdentity("acme", user, "s1", user)
    said = ConversationMessage(
        f"q-{words.one(user)}", "user", words.one(user), ManualClock()(),  # type: ignore[arg-type]
        name=words.one(user), tool_calls_json=f'["{words.one(user)}"]',
    )  # fmt: skip
    await store.conversations.append_messages(talk, [said])
    await store.conversations.rename_conversation(talk, title=words.one(user))
    await store.working.put(owner, {words.one(user): words.one(user)}, ttl_seconds=60)
    await store.working.put(owner, {words.one(user): words.one(user)}, ttl_seconds=60)
    first = await store.memories.save(fact(words, user))
    second = await store.memories.store_fact(fact(words, user), supersedes=first.memory_id)
    await store.memories.save(fact(words, user, memory_id=second.memory.memory_id))
    removed = await store.memories.save(fact(words, user, entity_ids=(words.one(user),)))
    await store.memories.delete(owner, removed.memory_id)


async def fail_in_every_way(store: AsyncSQLiteStore, words: Words) -> None:
    """A word in calls that are refused."""
    for bad in (
        fact(words, derived_from=(words.one(),)),
        fact(words, metadata={words.one(): words.one() * 400}),
    ):
        with pytest.raises(InvalidEntryError):
            await store.memories.save(bad)
    talk = ConversationIdentity("acme", "ana", "s1", "ana")
    role: Any = "user"
    for content in ("first", words.one()):
        said = [ConversationMessage("twice", role, content, ManualClock()())]
        if content == "first":
            await store.conversations.append_messages(talk, said)
            continue
        with pytest.raises(InvalidEntryError):
            await store.conversations.append_messages(talk, said)


async def test_nothing_of_what_was_erased_is_left_in_any_file(tmp_path: Path) -> None:
    words = Words()
    async with AsyncSQLiteStore(tmp_path / "m.db", audit=tmp_path / "audit.jsonl") as store:
        await write_everything(store, words)
        await write_everything(store, words, "bo")
        await fail_in_every_way(store, words)
        result = await store.erase(REALM)
        assert not result.pending
        assert words.left(tmp_path) == []
        assert await store.count(Scope("acme", subject="bo")) > 0
        kept = [word for word in words.made["bo"] if word in words.left(tmp_path, "bo")]
        assert len(kept) > 8
        await store.erase(Scope("acme", subject="bo"))
        assert words.left(tmp_path, "bo") == []
    assert words.left(tmp_path) == []


async def test_a_write_that_the_quota_refused_leaves_nothing(tmp_path: Path) -> None:
    words = Words()
    async with AsyncSQLiteStore(tmp_path / "m.db", quota_entries=1) as store:
        await store.memories.save(fact(words))
        for _ in range(20):
            with pytest.raises(QuotaExceededError):
                await store.memories.save(fact(words))
        await store.erase(REALM)
        assert words.left(tmp_path) == []


async def test_what_was_derived_leaves_nothing_either(tmp_path: Path) -> None:
    words = Words()
    async with AsyncSQLiteStore(tmp_path / "m.db") as store:
        shared = fact(words, scope=MemoryScope.TENANT, memory_id="m1")
        await store.memories.save(shared)
        derived = fact(words, "bo", derived_from=("m1",))
        await store.memories.save(derived)
        assert (await store.erase(REALM)).derived == 1
        assert words.left(tmp_path) == []
        assert words.left(tmp_path, "bo") == []


async def test_rows_that_moved_between_pages_leave_no_copies(tmp_path: Path) -> None:
    words, chance = Words(), random.Random(10)  # a history that leaves copies
    async with AsyncSQLiteStore(tmp_path / "m.db", synchronous="NORMAL") as store:
        for _ in range(900):
            user = chance.choice(["ana", "bo"])
            owner = person(user, run_id=f"r{chance.randrange(300)}")
            long = " ".join([words.one(user)] * chance.randrange(1, 80))
            if chance.random() < 0.5:
                await store.working.put(owner, {words.one(user): long}, ttl_seconds=60)
            else:
                name = f"m{chance.randrange(150)}"
                row = Memory(name, MemoryScope.USER, MemoryType.FACT, owner, long)
                await store.memories.save(row)
        for user in ("ana", "bo"):
            await store.erase(Scope("acme", subject=user))
            assert words.left(tmp_path, user) == []


async def test_a_file_that_others_wrote_without_secure_delete_is_left_clean(
    tmp_path: Path,
) -> None:
    words = Words()
    path = tmp_path / "m.db"
    async with AsyncSQLiteStore(path) as store:
        for _ in range(40):
            await write_everything(store, words)
    careless = sqlite3.connect(path)
    careless.execute("PRAGMA secure_delete = OFF")
    for number in range(1, 40, 2):
        careless.execute("DELETE FROM working WHERE owner LIKE ?", (f"%{number}%",))
        careless.execute("UPDATE memory SET content = 'gone' WHERE seq = ?", (number,))
        careless.execute("DELETE FROM message WHERE seq = ?", (number,))
    careless.commit()
    careless.close()
    assert words.left(tmp_path) != []
    async with AsyncSQLiteStore(path) as store:
        assert not (await store.erase(REALM)).pending
        assert words.left(tmp_path) == []


_READER = """
import sqlite3, sys
reader = sqlite3.connect(sys.argv[1], isolation_level=None)
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM memory").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Another process holds a read transaction until it is killed."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", _READER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "reading\n"
        try:
            yield
        finally:
            child.kill()  # so that it is not its closing that tidies up


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait for readers, shortened."""
    monkeypatch.setattr(journal, "WAIT_MILLISECONDS", 1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("completed_by", ["erase", "compact", "open", "close"])
async def test_an_erasure_beside_a_reader_is_pending_until_it_is_completed(
    completed_by: str, tmp_path: Path
) -> None:
    words, path = Words(), tmp_path / "m.db"
    store = await AsyncSQLiteStore(path).open()
    await write_everything(store, words)
    with reading(path):
        assert (await store.erase(REALM)).pending
        assert (await store.erase(REALM)).pending
        with pytest.raises(MemoryStoreError, match="while others read"):
            await store.compact()
    if completed_by == "erase":
        result = await store.erase(REALM)
        assert (result.entries, result.pending, result.receipt) == (0, False, None)
    elif completed_by == "compact":
        await store.compact()
    elif completed_by == "open":
        async with AsyncSQLiteStore(path):
            assert words.left(tmp_path) == []
    else:
        await store.aclose()
    assert words.left(tmp_path) == []
    await store.aclose()


@pytest.mark.usefixtures("impatient")
async def test_what_is_pending_outlives_the_store(tmp_path: Path) -> None:
    words, path = Words(), tmp_path / "m.db"
    async with AsyncSQLiteStore(path) as store:
        await write_everything(store, words)
    with reading(path):
        async with AsyncSQLiteStore(path) as store:
            assert (await store.erase(REALM)).pending
        assert words.left(tmp_path) != []
    async with AsyncSQLiteStore(path):
        assert words.left(tmp_path) == []


async def test_a_large_file_waits_for_compact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LARGEST_REWRITTEN_BYTES", 1)
    words = Words()
    async with AsyncSQLiteStore(tmp_path / "m.db") as store:
        await write_everything(store, words)
        assert (await store.erase(REALM)).pending
        await store.compact()
        assert words.left(tmp_path) == []
        assert not (await store.erase(REALM)).pending


async def test_what_was_swept_leaves_nothing_once_the_file_is_compacted(tmp_path: Path) -> None:
    words, clock = Words(), ManualClock()
    async with AsyncSQLiteStore(tmp_path / "m.db", clock=clock) as store:
        row = fact(words, created_at=clock(), expires_at=clock() + timedelta(seconds=1))
        await store.memories.save(row)
        clock.move(seconds=2)
        assert await store.sweep_expired(REALM) == 1
        await store.compact()
        assert words.left(tmp_path) == []


async def test_compacting_gives_space_back(tmp_path: Path) -> None:
    words, path = Words(), tmp_path / "m.db"
    async with AsyncSQLiteStore(path) as store:
        for _ in range(60):
            await write_everything(store, words)
            await write_everything(store, words, "bo")
        await store.compact()
        before = path.stat().st_size
        await store.erase(REALM)
        await store.compact()
        assert path.stat().st_size < before * 0.8
        assert await store.count(Scope("acme", subject="bo")) == 120


async def test_erasing_goes_on_in_a_damaged_file_and_says_that_it_waits(tmp_path: Path) -> None:
    """Hazard 24."""
    words, path = Words(), tmp_path / "m.db"
    async with AsyncSQLiteStore(path) as store:
        for _ in range(120):
            await store.memories.save(fact(words, "bo"))
        for _ in range(5):
            await store.memories.save(fact(words))
    with closing(sqlite3.connect(path)) as db:
        pages = db.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(path.read_bytes())
    at = content.find(words.made["bo"][61].encode()) // pages * pages
    content[at : at + 100] = b"\xff" * 100
    path.write_bytes(content)
    async with AsyncSQLiteStore(path) as store:
        result = await store.erase(REALM)
        assert (result.entries, result.pending) == (5, True)
        assert await store.count(REALM) == 0
