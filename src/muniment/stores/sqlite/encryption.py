"""Encryption of the file: the key is set on every connection before anything is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import apsw

from muniment.errors import MemoryConfigurationError, MemoryStoreError

EncryptionKey: TypeAlias = str | bytes | Callable[[], str | bytes]
"""A passphrase (bytes, or text in UTF-8), or what gives it when the file is opened."""

_PLAIN = b"SQLite format 3\x00"
_NO_CIPHER = (
    "this SQLite was built without a cipher, so that nothing would be encrypted: install the "
    "package `apsw-sqlite3mc` and uninstall `apsw`"
)
_PLAIN_FILE = (
    "the file is not encrypted; it was left as it is: open it without a key, export it, and "
    "import that into a new file with one"
)
_WRONG_KEY = "the encryption key does not fit the file; it was left as it is"


class Encryption:
    """Holds the key, and never shows it."""

    def __init__(self, key: EncryptionKey) -> None:
        if not callable(key):
            _passphrase(key)  # a bad key is refused where it was given
        self._key = key

    def __repr__(self) -> str:
        return "Encryption()"

    def unlock(self, connection: apsw.Connection) -> None:
        """Set the key of a connection that has read nothing yet.

        MemoryStoreError where this SQLite would silently ignore it.
        """
        if connection.execute("PRAGMA cipher").fetchone() is None:
            raise MemoryStoreError(_NO_CIPHER)
        key = self._key() if callable(self._key) else self._key
        connection.execute(f"PRAGMA hexkey = '{_passphrase(key).hex()}'")


@contextmanager
def key_errors(encryption: Encryption | None) -> Iterator[None]:
    """A file that cannot be read with a key has another: MemoryStoreError."""
    try:
        yield
    except apsw.NotADBError:
        if encryption is None:
            raise
        raise MemoryStoreError(_WRONG_KEY) from None


def require_not_plain(path: str) -> None:
    """MemoryStoreError where the file is plain although a key was given."""
    if _head(path) == _PLAIN:
        raise MemoryStoreError(_PLAIN_FILE)


def _head(path: str) -> bytes:
    if not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(len(_PLAIN))


def _passphrase(key: object) -> bytes:
    made = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
    if not isinstance(made, bytes) or not made:
        raise MemoryConfigurationError("encryption_key: must be text or bytes, and not empty")
    return made
