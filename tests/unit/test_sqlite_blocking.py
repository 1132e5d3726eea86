"""The synchronous store: the realm face of one file, from threads and without an event loop."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    FileInTheWayError,
    ImportResult,
    InvalidEntryError,
    MemoryConfigurationError,
    MemoryStoreError,
    NotFoundError,
    QuotaExceededError,
    Scope,
    SQLiteStore,
)
from muniment.domain.memory import MemoryType
from muniment.stores.sqlite.entries import SQLiteEntries
from muniment.testing import HashingEmbedder, ManualClock
from muniment.testing.kit import EVERY_SCOPE, person

ACME, ANA = Scope("acme"), Scope("acme", subject="ana")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def test_a_store_in_memory_answers_every_verb(tmp_path: Path) -> None:
    with SQLiteStore(clock=ManualClock()) as store:
        old = store.add(ANA, "Ana prefers email", trust="owner")
        new = store.supersede(ANA, old.id, "Ana prefers phone")
        assert store.get(ANA, new.id) == new
        assert [hit.entry for hit in store.search(ANA, "prefers")] == [new]
        assert [entry.id for entry in store.history(ANA, old.id)] == [old.id, new.id]
        assert [entry["id"] for entry in store.export(ANA)] == [old.id, new.id]
        assert store.export_file(ANA, tmp_path / "out.jsonl") == 2
        assert store.count(ACME) == 2
        assert store.usage(ANA).searches == 1
        assert store.reindex(ANA) == 2
        assert store.sweep_expired(ANA) == 0
        assert store.forget(ANA, [new.id]) == 1
        assert store.erase(ACME).entries == 1
        assert store.import_file(ANA, tmp_path / "out.jsonl") == ImportResult(2, 0, 0)
        store.compact()
        with pytest.raises(NotFoundError):
            store.get(ANA, new.id)


def test_the_async_ports_see_the_same_rows(path: Path) -> None:
    with SQLiteStore(path) as store:
        entry = store.add(ANA, "zebra")

        async def recalled() -> list[str]:
            hits = await store.ports.memories.candidates(
                person(), "zebra", scopes=EVERY_SCOPE, memory_types=tuple(MemoryType)
            )
            return [hit.memory.memory_id for hit in hits]

        assert asyncio.run(recalled()) == [entry.id]


def test_it_may_be_called_where_an_event_loop_runs(path: Path) -> None:
    async def inside() -> int:
        with SQLiteStore(path) as store:
            store.add(ANA, "zebra")
            await store.ports.entries.add(ANA, "zebra too")
            return len(store.search(ANA, "zebra"))

    assert asyncio.run(inside()) == 2


def test_an_embedder_is_asked_in_a_loop_of_its_own(path: Path) -> None:
    before = threading.active_count()
    with SQLiteStore(path, embedder=HashingEmbedder()) as store:
        store.add(ANA, "zebra in Rome")
        assert [hit.entry.text for hit in store.search(ANA, "zebra")] == ["zebra in Rome"]
    assert threading.active_count() == before


def test_verbs_have_the_signature_and_words_of_the_async_ones() -> None:
    for name in ("add", "search", "supersede", "import_file"):
        verb: Callable[..., Any] = getattr(SQLiteStore, name)
        original: Callable[..., Any] = getattr(SQLiteEntries, name)
        assert inspect.signature(verb) == inspect.signature(original)
        assert verb.__doc__ == original.__doc__


def test_closing_twice_is_harmless_and_a_closed_store_says_so(path: Path) -> None:
    store = SQLiteStore(path)
    store.search(ANA, "zebra")
    store.close()
    store.close()
    with pytest.raises(MemoryStoreError, match="closed"):
        store.add(ANA, "zebra")
    with SQLiteStore(path) as again:
        assert again.usage(ACME).searches == 1


def test_a_file_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"not a database" * 1000)
    before = threading.active_count()
    with pytest.raises(MemoryStoreError):
        SQLiteStore(garbage, embedder=HashingEmbedder())
    assert threading.active_count() == before
    assert garbage.read_bytes() == b"not a database" * 1000


def test_eight_threads_lose_nothing_and_share_commits(path: Path) -> None:
    with SQLiteStore(path, synchronous="NORMAL") as store, ThreadPoolExecutor(8) as threads:

        def work(number: int) -> list[str]:
            return [store.add(ANA, f"zebra {number} {step}").id for step in range(25)]

        ids = [name for names in threads.map(work, range(8)) for name in names]
        assert len({*ids}) == 200 == store.count(ANA)
        assert {entry["id"] for entry in store.export(ANA)} == {*ids}


def test_eight_threads_supersede_an_entry_once(path: Path) -> None:
    with SQLiteStore(path, synchronous="NORMAL") as store, ThreadPoolExecutor(8) as threads:
        old = store.add(ANA, "old")

        def work(number: int) -> bool:
            try:
                store.supersede(ANA, old.id, f"new {number}")
            except InvalidEntryError:
                return False
            return True

        assert sum(threads.map(work, range(8))) == 1
        assert store.count(ANA) == 2


def test_a_quota_holds_for_add_supersede_and_import(path: Path) -> None:
    with SQLiteStore(path, quota_entries=2) as store:
        one = store.add(ANA, "one")
        given = store.export(ANA)
        store.add(Scope("acme", subject="bo"), "two")
        for refused in (
            lambda: store.add(ANA, "three"),
            lambda: store.supersede(ANA, one.id, "three"),
            lambda: store.import_stream(ANA, _file(*given), skip_duplicates=False),
        ):
            with pytest.raises(QuotaExceededError):
                refused()
        assert store.get(ANA, one.id) == one
        assert store.count(ACME) == 2
        store.add(Scope("other"), "another tenant's")
        assert store.import_stream(ANA, _file(*given)).skipped_duplicates == 1


def test_a_quota_of_tokens_counts_by_the_callers_estimator(path: Path) -> None:
    with SQLiteStore(path, quota_tokens=5, token_estimator=lambda text: len(text)) as store:
        store.add(ANA, "12345")
        with pytest.raises(QuotaExceededError):
            store.add(ANA, "6")
        assert [hit.entry.text for hit in store.search(ANA, "12345", max_tokens=5)] == ["12345"]
        assert store.search(ANA, "12345", max_tokens=4) == []


def test_limits_are_the_stores_own(path: Path) -> None:
    with SQLiteStore(path, max_text_bytes=5, max_results=2) as store:
        for _ in range(3):
            store.add(ANA, "zebra")
        with pytest.raises(InvalidEntryError):
            store.add(ANA, "zebras")
        assert len(store.search(ANA, "zebra", k=50)) == 2


def _file(*entries: dict[str, Any]) -> io.BytesIO:
    head = {"format": "muniment-entries", "version": 1, "count": len(entries)}
    return io.BytesIO(b"".join(json.dumps(each).encode() + b"\n" for each in (head, *entries)))


# -- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a\x00b", "\ud800"])
def test_a_path_that_names_no_file_is_a_clear_error_and_makes_nothing(
    tmp_path: Path, name: str
) -> None:
    with SQLiteStore() as store:
        for verb in (store.export_file, store.import_file):
            with pytest.raises(MemoryStoreError, match="path: must be the name of a file"):
                verb(ANA, f"{tmp_path}/{name}")
    with pytest.raises(MemoryConfigurationError, match="path: must not hold"):
        SQLiteStore(f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_an_exported_file_is_private_and_never_overwrites(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    with SQLiteStore(path) as store:
        store.add(ANA, "zebra")
        umask = os.umask(0)
        try:
            assert store.export_file(ANA, target) == 1
        finally:
            os.umask(umask)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        before = target.read_bytes()
        for error in (FileInTheWayError, FileExistsError):
            with pytest.raises(error):
                store.export_file(ACME, target)
        assert target.read_bytes() == before
        dangling = tmp_path / "dangling.jsonl"
        dangling.symlink_to(tmp_path / "nowhere")
        with pytest.raises(FileInTheWayError):
            store.export_file(ANA, dangling)
        assert sorted(each.name for each in tmp_path.glob("*jsonl*")) == [
            "dangling.jsonl", "out.jsonl"
        ]  # fmt: skip


def test_an_export_that_fails_leaves_no_file(path: Path, tmp_path: Path) -> None:
    with SQLiteStore(path) as store, pytest.raises(MemoryStoreError):
        store.export_file(ANA, tmp_path / "missing" / "out.jsonl")
    store = SQLiteStore(path)
    store.close()
    with pytest.raises(MemoryStoreError):
        store.export_file(ANA, tmp_path / "out.jsonl")
    assert list(tmp_path.glob("*jsonl*")) == []


def test_a_file_that_is_not_there_is_a_clear_error(path: Path, tmp_path: Path) -> None:
    with SQLiteStore(path) as store:
        with pytest.raises(MemoryStoreError, match="cannot be read"):
            store.import_file(ANA, tmp_path / "missing.jsonl")
        with pytest.raises(MemoryStoreError, match="cannot be read"):
            store.import_file(ANA, tmp_path)
