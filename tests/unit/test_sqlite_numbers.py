"""A memory's number in its file is never used twice: images and pages go by it."""

from __future__ import annotations

import io
from pathlib import Path

import apsw
import pytest

from muniment import Scope, SQLiteStore

ACME = Scope("acme", subject="ana")


def numbers(path: Path) -> dict[str, int]:
    """Each entry's number, by its text."""
    with apsw.Connection(str(path)) as db:
        rows = db.execute("SELECT content, seq FROM memory").fetchall()
    return dict(rows)


def an_export(*texts: str) -> io.BytesIO:
    stream = io.BytesIO()
    with SQLiteStore() as store:
        for text in texts:
            store.add(ACME, text)
        store.export_stream(ACME, stream)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("emptied", [False, True])
def test_the_number_of_a_deleted_entry_is_not_given_again(tmp_path: Path, emptied: bool) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        first, last = store.add(ACME, "first"), store.add(ACME, "last")
        before = numbers(path)
        store.forget(ACME, [last.id, first.id] if emptied else [last.id])
        store.add(ACME, "next")
    with SQLiteStore(path) as store:
        store.add(ACME, "after opening")
    after = numbers(path)
    assert before["last"] < after["next"] < after["after opening"]


def test_an_import_goes_on_after_the_numbers_that_were_given(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        last = store.add(ACME, "last")
        before = numbers(path)
        store.forget(ACME, [last.id])
        store.import_stream(ACME, an_export("one", "two"))
        imported = numbers(path)
        store.add(ACME, "three")
    assert before["last"] < imported["one"] < imported["two"] < numbers(path)["three"]


def test_a_realm_that_is_erased_takes_no_number_along_for_others(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    other = Scope("globex")
    with SQLiteStore(path) as store:
        store.add(other, "kept")
        store.add(ACME, "erased")
        before = numbers(path)
        store.erase(ACME)
        store.add(other, "next")
    assert numbers(path)["next"] > before["erased"]
