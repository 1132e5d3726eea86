"""The encrypted file: nothing readable in it, and no way around its key that changes it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import apsw
import pytest

from muniment import MemoryConfigurationError, MemoryStoreError, Scope, SQLiteStore
from muniment.settings import load_settings
from muniment.stores.sqlite import connections, encryption
from muniment.testing.kit import person, talk_of
from muniment.wiring import open_memory

ANA = Scope("acmequokka", subject="anaquokka")
KEY = "correct horse 用户 battery"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def _fill(path: Path, key: Any = KEY) -> None:
    with SQLiteStore(path, encryption_key=key) as store:
        store.add(ANA, "xyzzyquokka lives in Rome", metadata={"plughquokka": 1})


def _bytes(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.parent.iterdir()}


@pytest.fixture
def filled(path: Path) -> Path:
    _fill(path)
    return path


def test_no_word_name_or_key_is_in_any_file_while_it_is_used(path: Path) -> None:
    with SQLiteStore(path, encryption_key=KEY) as store:
        entry = store.add(ANA, "Xyzzyquokka lives in Rome", metadata={"plughquokka": 1})
        store.supersede(ANA, entry.id, "moved to Portoquokka")
        store.search(ANA, "xyzzyquokka")
        files = _bytes(path)
        assert {"memory.db", "memory.db-wal"} <= files.keys()
        for name, data in files.items():
            assert b"quokka" not in data.lower(), name
            assert b"create table" not in data.lower(), name
            assert entry.id.encode() not in data, name
            assert KEY.encode() not in data, name
        store.erase(ANA)
    assert not _bytes(path)["memory.db"].startswith(b"SQLite format 3")


def test_the_same_key_opens_it_again_as_text_bytes_or_from_a_callback(filled: Path) -> None:
    asked: list[bytes] = []

    def callback() -> bytes:
        asked.append(KEY.encode())
        return KEY.encode()

    for key in (KEY, KEY.encode(), callback):
        with SQLiteStore(filled, encryption_key=key) as store:
            assert len(store.search(ANA, "xyzzyquokka")) == 1
    assert asked


@pytest.mark.parametrize("key", ["wrong", "", KEY.upper(), None])
def test_without_the_key_nothing_is_read_and_nothing_is_written(filled: Path, key: Any) -> None:
    before = _bytes(filled)
    refusal = MemoryConfigurationError if key == "" else MemoryStoreError
    with pytest.raises(refusal) as raised:
        SQLiteStore(filled, encryption_key=key)
    assert KEY not in str(raised.value)
    if key:
        assert "key does not fit" in str(raised.value)
        assert key not in str(raised.value)
    assert _bytes(filled) == before


def test_a_key_for_a_plain_file_is_refused_and_the_file_left_as_it_is(path: Path) -> None:
    _fill(path, None)
    before = _bytes(path)
    with pytest.raises(MemoryStoreError, match="not encrypted"):
        SQLiteStore(path, encryption_key=KEY)
    assert _bytes(path) == before
    with SQLiteStore(path) as store:
        assert store.count(ANA) == 1


def test_a_sqlite_without_a_cipher_is_refused_before_anything_is_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class WithoutCipher(apsw.Connection):
        def execute(self, statement: str, *more: Any, **options: Any) -> apsw.Cursor:
            silent = "SELECT 1 WHERE 0" if statement == "PRAGMA cipher" else statement
            return super().execute(silent, *more, **options)

    monkeypatch.setattr(connections.apsw, "Connection", WithoutCipher)
    with pytest.raises(MemoryStoreError, match="without a cipher"):
        SQLiteStore(path, encryption_key=KEY)
    assert set(_bytes(path).values()) <= {b""}


def test_a_file_that_turns_out_plain_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption.Encryption, "unlock", lambda *_: None)
    with pytest.raises(MemoryStoreError, match="not encrypted"):
        SQLiteStore(path, encryption_key=KEY)


@pytest.mark.parametrize("key", [7, object(), b"", "", [b"key"]])
def test_a_key_that_is_none_is_refused_where_it_is_given(path: Path, key: Any) -> None:
    with pytest.raises(MemoryConfigurationError, match="encryption_key"):
        SQLiteStore(path, encryption_key=key)
    assert _bytes(path) == {}


def test_a_store_in_memory_has_nothing_to_encrypt() -> None:
    with pytest.raises(MemoryConfigurationError, match="encryption_key"):
        SQLiteStore(encryption_key=KEY)


def test_the_key_comes_from_the_settings_and_is_never_shown(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MUNIMENT_ENCRYPTION_KEY", "from the settings")
    ana = person()

    async def remembered() -> int:
        async with open_memory(f"sqlite:///{path}", embedder=None) as memory:
            await memory.conversations.create(talk_of(ana), title="titlequokka")
            await memory.remember(ana, "xyzzyquokka")
            return len(await memory.recall(ana, "xyzzyquokka"))

    with caplog.at_level(logging.DEBUG):
        assert asyncio.run(remembered()) == 1
    assert "from the settings" not in caplog.text + repr(load_settings())
    assert all(b"quokka" not in data for data in _bytes(path).values())
    with pytest.raises(MemoryStoreError):
        SQLiteStore(path)
    with SQLiteStore(path, encryption_key="from the settings") as store:
        assert store.count(Scope("acme")) == 1
