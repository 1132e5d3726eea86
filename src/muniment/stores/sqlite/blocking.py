"""The synchronous store: the async one's own methods, driven without an event loop."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from muniment.blocking import BackgroundLoop
from muniment.domain.clock import Clock
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.evidence.weights import DEFAULT_NAME
from muniment.governance.audit import AuditLog
from muniment.governance.tokens import TokenEstimator
from muniment.ports import MemoryEmbedder
from muniment.stores.driven import drive
from muniment.stores.limits import MAX_RESULTS, MAX_TEXT_BYTES
from muniment.stores.sqlite.encryption import EncryptionKey
from muniment.stores.sqlite.entries import SQLiteEntries
from muniment.stores.sqlite.store import AsyncSQLiteStore

P = ParamSpec("P")
T = TypeVar("T")


def _of_entries(
    method: Callable[Concatenate[SQLiteEntries, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SQLiteStore, P], T]:
    """A verb of the realm face, blocking: its signature and documentation are the async one's."""

    @functools.wraps(method)
    def call(self: SQLiteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(method(self.ports.entries, *args, **kwargs))

    return call


def _of_store(
    method: Callable[Concatenate[AsyncSQLiteStore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SQLiteStore, P], T]:
    """A verb of the store itself, blocking."""

    @functools.wraps(method)
    def call(self: SQLiteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(method(self.ports, *args, **kwargs))

    return call


class SQLiteStore:
    """Entries by realm in one SQLite file, for code without an event loop. Safe for threads.

    Opened by its construction and closed by `close` or the end of a ``with``. `ports` is the
    async store on the same file. `clock` gives aware times; `embedder` adds meaning to words;
    `synchronous` is SQLite's level: FULL, NORMAL or EXTRA; with an `encryption_key` the file is
    encrypted. MemoryStoreError where the file cannot be used.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        audit: AuditLog | str | PathLike[str] | None = None,
        clock: Clock | None = None,
        max_text_bytes: int = MAX_TEXT_BYTES,
        max_results: int = MAX_RESULTS,
        quota_entries: int | None = None,
        quota_tokens: int | None = None,
        token_estimator: TokenEstimator | None = None,
        encryption_key: EncryptionKey | None = None,
        embedder: MemoryEmbedder | None = None,
        synchronous: str = "FULL",
        ranking: str = DEFAULT_NAME,
    ) -> None:
        self.ports = AsyncSQLiteStore(
            path,
            audit=audit,
            clock=clock,
            max_text_bytes=max_text_bytes,
            max_results=max_results,
            quota_entries=quota_entries,
            quota_tokens=quota_tokens,
            token_estimator=token_estimator,
            encryption_key=encryption_key,
            embedder=embedder,
            synchronous=synchronous,
            ranking=ranking,
        )
        # An embedder may do I/O of its own, which needs a loop; without one, none is started.
        self._loop = None if embedder is None else BackgroundLoop()
        try:
            self.run(self.ports.open())
        except BaseException:
            self._stop()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of one of the async store's coroutines, waited for in this thread."""
        return drive(work) if self._loop is None else self._loop.run(work)

    def __enter__(self) -> SQLiteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish queued work and close the file; a second time does nothing."""
        drive(self.ports.aclose())
        self._stop()

    def _stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    add = _of_entries(SQLiteEntries.add)
    get = _of_entries(SQLiteEntries.get)
    search = _of_entries(SQLiteEntries.search)
    supersede = _of_entries(SQLiteEntries.supersede)
    forget = _of_entries(SQLiteEntries.forget)
    export_stream = _of_entries(SQLiteEntries.export_stream)
    export_file = _of_entries(SQLiteEntries.export_file)
    import_stream = _of_entries(SQLiteEntries.import_stream)
    import_file = _of_entries(SQLiteEntries.import_file)
    history = _of_entries(SQLiteEntries.history)
    count = _of_store(AsyncSQLiteStore.count)
    erase = _of_store(AsyncSQLiteStore.erase)
    sweep_expired = _of_store(AsyncSQLiteStore.sweep_expired)
    compact = _of_store(AsyncSQLiteStore.compact)
    usage = _of_store(AsyncSQLiteStore.usage)
    reindex = _of_store(AsyncSQLiteStore.reindex)
    verify_audit = _of_store(AsyncSQLiteStore.verify_audit)
    restart_audit = _of_store(AsyncSQLiteStore.restart_audit)

    def export(self, scope: Scope | MemoryOwner) -> list[dict[str, Any]]:
        """Every entry of the realm as plain JSON values, in order of arrival."""
        return self.run(self._exported(scope))

    async def _exported(self, scope: Scope | MemoryOwner) -> list[dict[str, Any]]:
        return [entry async for entry in self.ports.entries.export(scope)]
