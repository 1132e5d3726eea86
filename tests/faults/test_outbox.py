"""The audit log and the data: killed in between, damaged, full, and shared by processes."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from benchmarks.faults.agreement import disagreements
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.errors import AuditError, MemoryConfigurationError
from muniment.governance import audit_file
from muniment.governance.audit import AuditLog, HeldLog, verify_audit_log
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.outbox import Outbox

ANA, BO = MemoryOwner("acme", user_id="ana"), MemoryOwner("acme", user_id="bo")

_CHILD = """
import asyncio, os, signal, sys
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.governance import audit, audit_file
from muniment.stores.sqlite import AsyncSQLiteStore, outbox

ANA = MemoryOwner("acme", user_id="ana")

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(path, log, name, count):
    async with AsyncSQLiteStore(path, audit=log) as store:
        await store.memories.save(Memory(f"{name}-first", "user", "fact", ANA, "first"))
        {fault}
        names = [f"{name}-{n}" for n in range(int(count))]
        memories = [Memory(each, "user", "fact", ANA, f"fact {each}") for each in names]
        if {together}:
            await asyncio.gather(*map(store.memories.save, memories))
        else:
            for memory in memories:
                await store.memories.save(memory)
                print(memory.memory_id, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
_FAULTS = {
    "before the append": "audit.HeldLog.append = die",
    "after the append": "outbox.Outbox._mark = die",
    "inside a line": """
        write = os.write
        def half(descriptor, content):
            write(descriptor, bytes(content)[: len(content) * 2 // 3])
            die()
        audit_file.os.write = half
    """,
    "at the last line feed": """
        write = os.write
        def short(descriptor, content):
            write(descriptor, bytes(content)[:-1])
            die()
        audit_file.os.write = short
    """,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def _fact(memory_id: str, owner: MemoryOwner = ANA) -> Memory:
    return Memory(memory_id, MemoryScope.USER, MemoryType.FACT, owner, f"content of {memory_id}")


@contextmanager
def _child(
    path: Path, log: Path, name: str, *, fault: str = "", count: int = 20, together: bool = True
) -> Iterator[subprocess.Popen[str]]:
    script = _CHILD.replace("{fault}", fault.strip() or "pass").replace("{together}", str(together))
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", script, str(path), str(log), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _killed(path: Path, log: Path, fault: str) -> None:
    with _child(path, log, "p", fault=_FAULTS[fault]) as process:
        assert process.wait(300) == -signal.SIGKILL


async def _reopened(path: Path, log: Path) -> None:
    async with AsyncSQLiteStore(path, audit=log):
        pass


def _events(log: Path) -> list[tuple[str, Any]]:
    records = map(json.loads, log.read_bytes().splitlines())
    return [(record["event"], record["data"].get("memory_id")) for record in records]


@pytest.mark.parametrize("fault", _FAULTS)
async def test_killed_between_the_commit_and_the_log_they_agree_after_a_restart(
    fault: str, path: Path, log: Path
) -> None:
    """Hazard 23."""
    _killed(path, log, fault)
    assert disagreements(path, log) != []
    await _reopened(path, log)
    assert disagreements(path, log) == []
    events = _events(log)
    assert len(events) > 1
    await _reopened(path, log)
    assert _events(log) == events


@pytest.mark.parametrize("fault", _FAULTS)
async def test_another_living_process_brings_in_the_records_of_a_killed_one(
    fault: str, path: Path, log: Path
) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:
        await store.memories.save(_fact("before"))
        _killed(path, log, fault)
        await store.memories.save(_fact("after"))
    assert disagreements(path, log) == []
    assert _events(log)[-1] == ("memory.saved", "after")
    assert len(_events(log)) > 3


async def test_killed_before_the_commit_neither_side_knows_of_it(path: Path, log: Path) -> None:
    with _child(path, log, "p", fault="store._core._keep = die") as one:
        assert one.wait(300) == -signal.SIGKILL
    await _reopened(path, log)
    assert disagreements(path, log) == []
    assert _events(log) == [("memory.saved", "p-first")]


async def test_four_processes_write_one_chain_without_loss_or_repetition(
    path: Path, log: Path
) -> None:
    await _reopened(path, log)
    children = [_child(path, log, f"p{n}", count=30, together=bool(n % 2)) for n in range(4)]
    entered = [child.__enter__() for child in children]
    assert [process.wait(300) for process in entered] == [0] * 4
    for child in children:
        child.__exit__(None, None, None)
    assert disagreements(path, log) == []
    assert len(_events(log)) == 4 * 31


async def test_concurrent_writers_share_the_flushes_of_the_log(
    path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    flush = os.fsync
    monkeypatch.setattr(audit_file.os, "fsync", lambda fd: flushed.append(fd) or flush(fd))
    async with AsyncSQLiteStore(path, audit=log) as store:
        flushed.clear()
        await asyncio.gather(*(store.memories.save(_fact(f"m{n}")) for n in range(200)))
        assert len(_events(log)) == 200
        assert len(flushed) < 50


# -- a log that is damaged, missing or full ------------------------------------------------


def _spoil_middle(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"memory.saved", b"memory.moved")
    log.write_bytes(b"".join(lines))


def _cut_off(log: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


def _tear(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-20])


def _tear_to_its_first_bytes(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:4])


def _nest(log: Path) -> None:
    log.write_bytes(log.read_bytes() + b"[" * 60_000 + b"\n")


_DAMAGE: dict[str, Any] = {
    "an edited record": _spoil_middle,
    "the last record cut off": _cut_off,
    "a torn last line": _tear,
    "a last line of four bytes": _tear_to_its_first_bytes,
    "half a line of something else": lambda log: log.write_bytes(log.read_bytes() + b"{half"),
    "60,000 brackets": _nest,
    "emptied": lambda log: log.write_bytes(b""),
    "deleted": Path.unlink,
}


def _content(log: Path) -> bytes:
    return log.read_bytes()


def _put_away(log: Path) -> None:
    log.rename(log.with_suffix(".damaged"))


def _put_back(log: Path, content: bytes) -> None:
    log.write_bytes(content)


async def _refused(store: AsyncSQLiteStore) -> None:
    with pytest.raises(AuditError):
        await store.memories.save(_fact("refused"))
    with pytest.raises(AuditError):
        await store.memories.store_fact(_fact("refused"))
    with pytest.raises(AuditError):
        await store.entries.add(Scope("acme", subject="ana"), "refused")
    assert await store.memories.get(ANA, "refused") is None


@pytest.mark.parametrize("damage", _DAMAGE)
@pytest.mark.parametrize("closed", [True, False], ids=["while closed", "while open"])
async def test_with_a_damaged_log_reading_and_erasing_go_on_and_writing_is_refused(
    damage: str, closed: bool, path: Path, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Hazard 24, and decision 28."""
    store = AsyncSQLiteStore(path, audit=log)
    for name in ("a", "b", "c"):
        await store.memories.save(_fact(name))
    await store.memories.save(_fact("of bo", BO))
    sound = _content(log)
    if closed:
        await store.aclose()
    _DAMAGE[damage](log)
    if closed:
        store = AsyncSQLiteStore(path, audit=log)
        await store.open()
        assert "not written to" in caplog.text
    await _refused(store)
    assert await store.memories.get(ANA, "a") is not None
    caplog.clear()
    assert await store.memories.delete(ANA, "a")
    assert (await store.erase(Scope("acme", subject="bo"))).entries == 1
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 2
    assert "content" not in caplog.text
    assert await store.count(Scope("acme")) == 2
    _put_back(log, sound)
    await store.memories.save(_fact("again"))
    await store.aclose()
    assert disagreements(path, log) == []
    events = [event for event, _ in _events(log)]
    assert events[4:] == ["memory.deleted", "realm.erased", "memory.saved"]


async def test_a_log_that_fills_up_after_the_commit_gets_its_records_later_and_once(
    path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with AsyncSQLiteStore(path, audit=log) as store:
        await store.memories.save(_fact("before"))
        with monkeypatch.context() as patched:
            patched.setattr(audit_file.os, "write", full)
            await store.memories.save(_fact("during"))
        assert "No space left" in caplog.text
        assert await store.memories.get(ANA, "during") is not None
        assert _events(log) == [("memory.saved", "before")]
        await store.memories.save(_fact("after"))
    assert [name for _, name in _events(log)] == ["before", "during", "after"]
    assert disagreements(path, log) == []


async def test_a_log_that_stays_full_takes_no_second_write_until_it_has_the_first(
    path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:
        with monkeypatch.context() as patched:
            patched.setattr(HeldLog, "append", _no_space)
            await store.memories.save(_fact("first"))  # it was durable before the log failed
            for name in ("second", "third"):
                with pytest.raises(AuditError, match="No space left"):
                    await store.memories.save(_fact(name))
            assert await store.memories.delete(ANA, "first")
            assert await store.memories.get(ANA, "second") is None
        await store.memories.save(_fact("fourth"))
    assert [name for _, name in _events(log)] == ["first", "first", "fourth"]
    assert disagreements(path, log) == []


async def test_a_mark_that_fails_after_the_append_repeats_no_record(
    path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:
        with monkeypatch.context() as patched:
            patched.setattr(Outbox, "_mark", _busy)
            await store.memories.save(_fact("during"))
        await store.memories.save(_fact("after"))
    assert [name for _, name in _events(log)] == ["during", "after"]
    assert disagreements(path, log) == []


def _busy(*_: object) -> None:
    raise apsw.BusyError("database is locked")


async def test_a_record_that_is_not_fit_undoes_its_change_alone(path: Path, log: Path) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:

        def unfit(change: Change) -> None:
            change.db.execute("INSERT INTO setting VALUES ('half', '')")
            change.record("test.unfit", None, data="x" * 70_000)

        unfit_one = store._core.change(unfit)
        good = store.memories.save(_fact("good"))
        answers = await asyncio.gather(unfit_one, good, return_exceptions=True)
        assert isinstance(answers[0], AuditError)
        assert isinstance(answers[1], Memory)
    names = [row[0] for row in apsw.Connection(str(path)).execute("SELECT name FROM setting")]
    assert "half" not in names
    assert _events(log) == [("memory.saved", "good")]


async def test_two_files_share_one_log_and_each_finds_what_is_cut_off_of_its_own(
    tmp_path: Path, log: Path
) -> None:
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    async with (
        AsyncSQLiteStore(one, audit=log) as first,
        AsyncSQLiteStore(two, audit=log) as second,
    ):
        for name in ("a", "b"):
            await first.memories.save(_fact(f"first {name}"))
            await second.memories.save(_fact(f"second {name}"))
    assert verify_audit_log(log).records == 4
    _cut_off(log)
    async with (
        AsyncSQLiteStore(one, audit=log) as first,
        AsyncSQLiteStore(two, audit=log) as second,
    ):
        await first.memories.save(_fact("first c"))  # all of its own records are there
        with pytest.raises(AuditError, match=r"replaced|cut off"):
            await second.memories.save(_fact("second c"))


async def test_one_log_object_serves_two_files(tmp_path: Path, log: Path) -> None:
    shared = AuditLog(log)
    async with (
        AsyncSQLiteStore(tmp_path / "one.db", audit=shared) as first,
        AsyncSQLiteStore(tmp_path / "two.db", audit=shared) as second,
    ):
        await asyncio.gather(
            *(first.memories.save(_fact(f"first {n}")) for n in range(20)),
            *(second.memories.save(_fact(f"second {n}")) for n in range(20)),
        )
    assert len({name for _, name in _events(log)}) == 40
    assert verify_audit_log(log) == AuditLog(log).verify()
    assert verify_audit_log(log).records == 40


async def test_a_write_waits_for_a_log_that_is_locked_and_the_event_loop_does_not(
    path: Path, log: Path
) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:
        await store.memories.save(_fact("a"))
        with AuditLog(log).held():
            saving = asyncio.ensure_future(store.memories.save(_fact("b")))
            while await store.memories.get(ANA, "b") is None:
                pass  # it is committed before long
            for _ in range(10):
                assert await store.memories.get(ANA, "b") is not None
            assert not saving.done()
        await saving
    assert _events(log) == [("memory.saved", "a"), ("memory.saved", "b")]


async def test_records_that_cannot_be_appended_are_no_sound_verification(
    path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:
        await store.memories.save(_fact("a"))
        with monkeypatch.context() as patched:
            patched.setattr(HeldLog, "append", _no_space)
            await store.memories.save(_fact("b"))
            checked = await store.verify_audit()
        assert checked is not None
        assert (checked.ok, checked.error) == (False, "1 records are not in the log yet")
        checked = await store.verify_audit()
        assert checked is not None
        assert (checked.ok, checked.records) == (True, 2)


def _no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_file_that_has_a_log_and_is_opened_without_it_says_so(
    path: Path, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_fact("a"))
    async with AsyncSQLiteStore(path, audit=log) as store:
        await store.memories.save(_fact("b"))
    assert caplog.text == ""
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_fact("c"))
    assert "changes are not recorded" in caplog.text


async def test_without_a_log_nothing_is_kept_for_one(path: Path) -> None:
    async with AsyncSQLiteStore(path) as store:
        await store.memories.save(_fact("a"))
        await store.erase(Scope("acme"))
    outbox = apsw.Connection(str(path)).execute(
        "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'"
    )
    assert outbox.get is None


@pytest.mark.parametrize("closed", [True, False], ids=["while closed", "while open"])
async def test_a_damaged_log_that_was_put_away_is_followed_by_a_new_one_that_says_so(
    closed: bool, path: Path, log: Path
) -> None:
    store = AsyncSQLiteStore(path, audit=log)
    for name in ("a", "b"):
        await store.memories.save(_fact(name))
    last = verify_audit_log(log)
    if closed:
        await store.aclose()
    _put_away(log)
    if closed:
        store = AsyncSQLiteStore(path, audit=log)
    assert await store.memories.delete(ANA, "a")
    await _refused(store)
    assert await store.restart_audit()
    assert not await store.restart_audit()
    await store.memories.save(_fact("c"))
    described = await store.describe()
    await store.aclose()
    assert described["audit_waiting"] == "0"
    assert [event for event, _ in _events(log)] == [
        "memory.deleted",
        "audit.restarted",
        "memory.saved",
    ]
    given_up = json.loads(_content(log).splitlines()[1])["data"]
    assert (given_up["records"], given_up["last_hash"]) == (2, last.last_hash)
    assert verify_audit_log(log).ok


async def test_a_log_that_is_damaged_in_itself_is_not_gone_on_with(path: Path, log: Path) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:
        for name in ("a", "b", "c"):
            await store.memories.save(_fact(name))
        _spoil_middle(log)
        assert await store.memories.delete(ANA, "a")
        with pytest.raises(AuditError, match="line 2"):
            await store.restart_audit()
        assert (await store.describe())["audit_waiting"] == "1"
        await _refused(store)
    async with AsyncSQLiteStore() as store:
        with pytest.raises(MemoryConfigurationError, match="no log"):
            await store.restart_audit()


async def test_a_damaged_anchor_refuses_writes_and_lets_erase_until_it_is_given_up(
    path: Path, log: Path
) -> None:
    async with AsyncSQLiteStore(path, audit=log) as store:
        await store.memories.save(_fact("a"))
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE setting SET value = '{}' WHERE name = 'audit_anchor'")
    connection.close()
    async with AsyncSQLiteStore(path, audit=log) as store:
        await _refused(store)
        assert await store.memories.get(ANA, "a") is not None
        assert (await store.erase(Scope("acme"))).entries == 1
        checked = await store.verify_audit()
        assert checked is not None
        assert "anchor" in (checked.error or "")
        assert await store.restart_audit()
        await store.memories.save(_fact("b"))
    assert disagreements(path, log) == []
