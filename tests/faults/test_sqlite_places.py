"""Files that are moved, removed or replaced while a store has them open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from muniment import MemoryStoreError, Scope, SQLiteStore

ANN = Scope("acme", subject="ann")
_GONE = "moved, removed or replaced"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(path) as opened:
        opened.add(ANN, "tea before")
        yield opened


def _texts(store: SQLiteStore) -> list[str]:
    return [entry["text"] for entry in store.export(ANN)]


def test_no_write_is_acknowledged_to_a_file_that_was_removed(
    store: SQLiteStore, path: Path
) -> None:
    path.unlink()
    for write in (lambda: store.add(ANN, "tea lost"), lambda: store.erase(ANN), store.compact):
        with pytest.raises(MemoryStoreError, match=_GONE):
            write()
    assert not path.exists(), "nothing begins a second file in its place"


def test_what_was_open_for_reading_can_still_be_saved_elsewhere(
    store: SQLiteStore, path: Path, tmp_path: Path
) -> None:
    assert _texts(store) == ["tea before"]
    path.unlink()
    assert store.export_file(ANN, tmp_path / "saved.jsonl") == 1


def test_a_file_that_was_put_back_is_written_again(store: SQLiteStore, path: Path) -> None:
    path.rename(path.with_name("away"))
    with pytest.raises(MemoryStoreError, match=_GONE):
        store.add(ANN, "tea meanwhile")
    path.with_name("away").rename(path)
    store.add(ANN, "tea after")
    assert _texts(store) == ["tea before", "tea after"]


def test_another_file_in_its_place_is_neither_written_nor_read(
    store: SQLiteStore, path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with SQLiteStore(other) as others:
        others.add(ANN, "coffee of another file")
    os.replace(other, path)
    with pytest.raises(MemoryStoreError, match=_GONE):
        store.add(ANN, "tea lost")
    with pytest.raises(MemoryStoreError, match=_GONE):
        store.search(ANN, "coffee")


@pytest.mark.parametrize("removed", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_what_was_in_a_journal_that_was_removed_is_kept_and_others_see_it(
    store: SQLiteStore, path: Path, removed: tuple[str, ...]
) -> None:
    assert _texts(store) == ["tea before"]
    for suffix in removed:
        path.with_name(f"{path.name}{suffix}").unlink()
    store.add(ANN, "tea after")
    assert _texts(store) == ["tea before", "tea after"]
    copy = path.with_name("copy.db")  # as it is found after a kill
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    db = apsw.Connection(str(copy))
    assert db.execute("SELECT count(*) FROM memory").get == 2
    assert db.execute("PRAGMA integrity_check").get == "ok"
    db.close()


def test_two_stores_of_a_process_lose_nothing_that_either_acknowledged(
    store: SQLiteStore, path: Path
) -> None:
    acknowledged = ["tea before"]
    with SQLiteStore(path) as second:
        assert second.count(ANN) == 1
        path.with_name(f"{path.name}-wal").unlink()
        for number, each in enumerate((store, second, store)):
            with suppress(MemoryStoreError):  # SQLite mixes the journals up until both are closed
                acknowledged.append(each.add(ANN, f"tea {number}").text)
    store.close()
    with SQLiteStore(path) as again:
        assert _texts(again) == acknowledged


def test_a_relative_path_is_one_file_whatever_the_folder_is_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with SQLiteStore("memory.db") as store:
        monkeypatch.chdir(elsewhere)
        store.add(ANN, "tea")
        assert _texts(store) == ["tea"]
    assert list(elsewhere.iterdir()) == []
