"""One file a tenant: who is where, how many are open, and what is deleted when."""

from __future__ import annotations

import inspect
import io
import multiprocessing
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    AuditLog,
    InvalidEntryError,
    MemoryConfigurationError,
    MemoryOwner,
    MemoryStoreError,
    NotFoundError,
    QuotaExceededError,
    Scope,
    ScopeError,
    ShardedStore,
    SQLiteStore,
    verify_audit_log,
)

BY_REALM = ("run", "close", "erase", "compact", "verify_audit", "restart_audit")
ANA = Scope("acme", subject="ana")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shards"


def _databases(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.db"))


def test_a_directory_that_is_a_file_is_a_clear_error(folder: Path) -> None:
    folder.write_text("taken")
    with pytest.raises(MemoryStoreError, match="File exists"):
        ShardedStore(folder)
    assert folder.read_text() == "taken"


def test_each_tenant_has_a_private_file_whose_name_tells_nothing(folder: Path) -> None:
    with ShardedStore(folder) as store:
        for tenant in ("acme", "ACME", "acme_", "id:ü-日本"):
            store.add(Scope(tenant), f"zebra of {tenant}")
            assert [e["text"] for e in store.export(Scope(tenant))] == [f"zebra of {tenant}"]
        assert len(_databases(folder)) == 4
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for each in folder.iterdir():
            assert stat.S_IMODE(each.stat().st_mode) == 0o600, each.name
            assert "acme" not in each.name.lower()


def test_a_refused_write_leaves_no_file(folder: Path) -> None:
    with ShardedStore(folder, quota_entries=1, ranking="hybrid") as store:
        with pytest.raises(InvalidEntryError):
            store.add(ANA, "x" * 9000)
        with pytest.raises(InvalidEntryError):
            store.import_stream(ANA, io.BytesIO(b"rubbish"))
        assert list(folder.iterdir()) == []
        store.add(ANA, "Ana prefers email")
        with pytest.raises(QuotaExceededError):
            store.add(ANA, "Ana prefers phone")
        assert store.count(ANA) == 1


def test_every_verb_reaches_the_tenants_own_file(folder: Path, tmp_path: Path) -> None:
    with ShardedStore(folder) as store:
        old = store.add(ANA, "Ana prefers email")
        new = store.supersede(ANA, old.id, "Ana prefers phone")
        store.add(Scope("other"), "Ana of another tenant")
        assert store.get(ANA, new.id) == new
        assert [hit.entry for hit in store.search(ANA, "ana")] == [new]
        assert [entry.id for entry in store.history(ANA, old.id)] == [old.id, new.id]
        assert store.count(ANA) == 2
        assert store.usage(ANA).searches == 1
        assert store.reindex(ANA) == 2
        assert store.sweep_expired(ANA) == 0
        assert store.export_file(ANA, tmp_path / "out.jsonl") == 2
        assert store.forget(ANA, [new.id]) == 1
        store.compact(ANA)
        assert store.import_file(ANA, tmp_path / "out.jsonl").imported == 1
        for verb in (store.get, store.history):
            with pytest.raises(NotFoundError):
                verb(Scope("other"), old.id)
        with pytest.raises(ScopeError):
            store.count("tenant=acme")  # type: ignore[arg-type]


def test_it_has_the_methods_of_the_synchronous_store() -> None:
    for name, verb in inspect.getmembers(SQLiteStore, inspect.isfunction):
        if not name.startswith("_") and name not in BY_REALM:
            assert inspect.signature(verb) == inspect.signature(getattr(ShardedStore, name)), name


def test_asking_about_a_tenant_without_a_file_makes_none(folder: Path) -> None:
    with ShardedStore(folder) as store:
        assert store.search(ANA, "zebra") == []
        assert store.export(ANA) == []
        assert store.count(ANA) == 0
        assert store.forget(ANA, ["mem_x"]) == 0
        assert store.erase(Scope("acme")).entries == 0
        with pytest.raises(NotFoundError):
            store.supersede(ANA, "mem_x", "text")
        with pytest.raises(InvalidEntryError):
            store.search(ANA, "x" * 1001)
        assert list(folder.iterdir()) == []


def test_no_tenant_loses_anything_when_another_opens_many(folder: Path) -> None:
    with ShardedStore(folder, max_open=2) as store:
        entry = store.add(ANA, "zebra")
        for number in range(10):
            store.add(Scope(f"tenant{number}"), "zebra")
            assert store.open_files <= 2
        assert store.get(ANA, entry.id) == entry
        assert all(store.count(Scope(f"tenant{number}")) == 1 for number in range(10))


def test_more_threads_than_open_files_wait_for_each_other(folder: Path) -> None:
    with (
        ShardedStore(folder, max_open=2, synchronous="NORMAL") as store,
        ThreadPoolExecutor(8) as threads,
    ):

        def work(number: int) -> None:
            for step in range(6):
                store.add(Scope(f"tenant{(number + step) % 5}"), f"zebra {number} {step}")
                assert store.open_files <= 2

        list(threads.map(work, range(8)))
        assert sum(store.count(Scope(f"tenant{number}")) for number in range(5)) == 48


def test_options_apply_to_every_file(folder: Path) -> None:
    with ShardedStore(folder, quota_entries=1, max_text_bytes=5) as store:
        for tenant in ("acme", "other"):
            store.add(Scope(tenant), "zebra")
            with pytest.raises(QuotaExceededError):
                store.add(Scope(tenant), "again")
            with pytest.raises(InvalidEntryError):
                store.add(Scope(tenant), "too long")
    for wrong in ({"max_open": 0}, {"max_open": True}, {"path": "x"}, {"quota_entries": -1}):
        options: dict[str, Any] = dict(wrong)
        with pytest.raises(MemoryConfigurationError):
            ShardedStore(folder, **options)


def test_a_tenant_wide_erasure_deletes_the_file(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    with ShardedStore(folder, audit=log) as store:
        store.add(ANA, "zebra")
        store.add(Scope("other"), "zebra")
        assert store.erase(ANA).entries == 1
        assert len(_databases(folder)) == 2
        store.add(ANA, "zebra")
        result = store.erase(Scope("acme"))
        assert (result.entries, result.pending) == (1, False)
        assert result.receipt
        for realm in (Scope("acme"), Scope("other")):
            verified = store.verify_audit(realm, receipt=result.receipt)
            assert verified is not None
            assert verified.ok
        assert not store.restart_audit(Scope("other"))
        assert len(_databases(folder)) == 1
        assert len(list(folder.iterdir())) <= 4
        assert store.count(ANA) == 0
        store.add(ANA, "zebra again")
        assert store.count(ANA) == 1
    verified = verify_audit_log(log, expected_count=6)
    assert verified.ok, verified
    assert log.read_text("utf-8").count("realm.erased") == 2


def test_a_file_whose_record_has_to_wait_is_emptied_and_kept(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    with ShardedStore(folder, audit=log) as store:
        store.add(ANA, "zebra")
        whole = log.read_bytes()
        log.write_bytes(whole[:-9])
        assert store.erase(Scope("acme")).entries == 1
        (kept,) = _databases(folder)
        assert b"zebra" not in kept.read_bytes()
        assert store.count(ANA) == 0
        log.write_bytes(whole)
        store.erase(Scope("acme"))
        assert _databases(folder) == []
    assert verify_audit_log(log).ok


def test_a_file_that_another_store_has_open_is_emptied_and_kept(folder: Path) -> None:
    with ShardedStore(folder) as store, ShardedStore(folder) as other:
        store.add(ANA, "zebra")
        assert other.count(ANA) == 1
        assert store.erase(Scope("acme")).entries == 1
        assert len(_databases(folder)) == 1
        added = other.add(ANA, "added after")
        assert store.get(ANA, added.id) == added
    with ShardedStore(folder) as store:
        assert store.erase(Scope("acme")).entries == 1
        assert list(folder.iterdir()) == []


def _add_and_erase(folder: Path, number: int) -> None:
    with ShardedStore(folder, synchronous="NORMAL") as store:
        for step in range(5):
            store.add(Scope("acme", subject=f"u{number}"), f"zebra {step}")
            if number == 0:
                store.erase(Scope("acme"))
        if number == 0:
            store.add(Scope("acme", subject="last"), "zebra")


def test_processes_add_while_another_erases_and_no_later_write_is_lost(folder: Path) -> None:
    start = multiprocessing.get_context("spawn")
    workers = [start.Process(target=_add_and_erase, args=(folder, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with ShardedStore(folder) as store:
        assert store.count(Scope("acme", subject="last")) == 1


def test_a_folder_that_others_may_read_is_refused_unless_it_is_empty(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    with ShardedStore(folder) as store:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        store.add(ANA, "zebra")
    folder.chmod(0o755)
    with pytest.raises(MemoryConfigurationError, match="directory"):
        ShardedStore(folder)


def test_an_owner_whose_ids_fit_no_realm_has_a_file_too(folder: Path) -> None:
    odd = MemoryOwner("a tenant/with = signs", user_id="100% odd")
    with ShardedStore(folder) as store:
        store.add(odd, "zebra")
        assert store.count(odd) == 1


def test_a_closed_store_says_so(folder: Path, tmp_path: Path) -> None:
    store = ShardedStore(folder, audit=AuditLog(tmp_path / "audit.jsonl"))
    store.add(ANA, "zebra")
    store.close()
    store.close()
    with pytest.raises(MemoryStoreError, match="closed"):
        store.add(ANA, "zebra")


def test_an_encrypted_shard_tells_nothing(folder: Path) -> None:
    with ShardedStore(folder, encryption_key="secret") as store:
        store.add(ANA, "xyzzyquokka")
        assert store.search(Scope("nobody"), "zebra") == []
        for each in folder.iterdir():
            assert b"xyzzyquokka" not in each.read_bytes()
    with ShardedStore(folder, encryption_key="wrong") as store, pytest.raises(MemoryStoreError):
        store.count(ANA)
