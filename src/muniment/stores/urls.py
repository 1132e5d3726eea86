"""The store that a URL names; its driver is imported when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muniment.errors import MemoryConfigurationError

if TYPE_CHECKING:
    from muniment.stores.in_memory import InMemoryStore
    from muniment.stores.postgres import PostgresStore
    from muniment.stores.sqlite import AsyncSQLiteStore

_SQLITE = "sqlite:///"
_IN_MEMORY = "memory://"
_AUDIT_TABLE = "table"
_POSTGRES = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")  # with a driver, as others write it


def store_of(
    url: str, options: Mapping[str, Any], encryption_key: str | None
) -> InMemoryStore | PostgresStore | AsyncSQLiteStore:
    """The store, not open yet; MemoryConfigurationError for a URL or an option that does not fit.

    `options` are those that every store takes. `encryption_key` is a SQLite file's.
    """
    if url == _IN_MEMORY:
        from muniment.stores.in_memory import InMemoryStore

        return InMemoryStore(**options)
    if is_postgres(url):
        return _postgres(url, options)
    from muniment.stores.sqlite import AsyncSQLiteStore

    return AsyncSQLiteStore(sqlite_file(url), **options, encryption_key=encryption_key)


def sqlite_file(url: str) -> str:
    """The file (or `:memory:`) that `url` names; MemoryConfigurationError where it names none."""
    path = url.removeprefix(_SQLITE)
    if path in (url, ""):
        raise MemoryConfigurationError(
            f"url: must look like {_SQLITE}FILE, postgresql://HOST/DATABASE or {_IN_MEMORY}"
        )
    if "?" in path:  # a key written there would be a plain file's name
        raise MemoryConfigurationError(
            "url: must not hold a question mark: options and keys are settings of their own"
        )
    return path


def has_file(url: str) -> bool:
    """Whether `url` is of a kind of store that is a file."""
    return url != _IN_MEMORY and not is_postgres(url)


def _postgres(url: str, options: Mapping[str, Any]) -> PostgresStore:
    from muniment.stores.postgres import PostgresStore

    audit = options.get("audit")
    if audit not in (None, _AUDIT_TABLE):
        raise MemoryConfigurationError(
            f"audit: in PostgreSQL the log is a table: say {_AUDIT_TABLE!r}, not a file"
        )
    return PostgresStore(postgres_url(url), **{**options, "audit": audit is not None})


def is_postgres(url: str) -> bool:
    """Whether `url` names a PostgreSQL database."""
    return _POSTGRES.match(url) is not None


def postgres_url(url: str) -> str:
    """`url` without the driver that it may name: the one in use is psycopg."""
    return _POSTGRES.sub("postgresql://", url, count=1)
