"""One file a tenant, so that tenants do not slow each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from muniment.domain import checks
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.errors import MemoryConfigurationError, MunimentError
from muniment.governance.audit import VerifyResult, audit_log, verify_audit_log
from muniment.stores.erasure import ErasureResult
from muniment.stores.sqlite.blocking import SQLiteStore
from muniment.stores.sqlite.shards import Shards

P = ParamSpec("P")
T = TypeVar("T")
Realm = Scope | MemoryOwner

DEFAULT_OPEN = 64
_MOST_OPEN = 10_000


def _of_tenant(
    method: Callable[Concatenate[SQLiteStore, Realm, P], T], *, creates: bool = False
) -> Callable[Concatenate[ShardedStore, Realm, P], T]:
    """A verb of the realm's tenant's own store; only one that `creates` makes its file, and
    only where it stores something."""

    @functools.wraps(method)
    def call(self: ShardedStore, /, scope: Realm, *args: P.args, **kwargs: P.kwargs) -> T:
        made = creates and not self._has_file(scope)
        try:
            with self._shard(scope, creates=creates) as store:
                return method(store, scope, *args, **kwargs)
        except MunimentError:
            if made:
                self._drop_unused(realm_key(scope).tenant)
            raise

    return cast("Callable[Concatenate[ShardedStore, Realm, P], T]", call)


class ShardedStore:
    """The methods of `SQLiteStore` over one file a tenant, named by a hash of the tenant's id.

    The folder has mode 0700 and the files 0600; at most `max_open` files are open, the least
    recently used being closed. The `options` are those of `SQLiteStore`, and apply to every file
    (quotas so to every tenant). GLOBAL memories belong to no file and are refused. Safe for
    threads and processes, on POSIX. Separate files are no stronger boundary than the filter.
    """

    def __init__(self, directory: str | Path, max_open: int = DEFAULT_OPEN, **options: Any) -> None:
        try:
            checks.whole("max_open", max_open, low=1, high=_MOST_OPEN)
        except ValueError as error:
            raise MemoryConfigurationError(str(error)) from None
        if "path" in options:
            raise MemoryConfigurationError("path: the directory says where the files are")
        self._log = log = audit_log(options.pop("audit", None))  # one: each would read it first
        # What has no file yet is answered by a store that is empty.
        self._empty = SQLiteStore(**{**options, "encryption_key": None})
        self._shards = Shards(
            Path(directory), max_open, lambda path: SQLiteStore(path, audit=log, **options)
        )

    @contextmanager
    def _shard(self, scope: Realm, *, creates: bool = False) -> Iterator[SQLiteStore]:
        """The store of the realm's tenant during the block, an empty one where there is none."""
        if not creates and not self._has_file(scope):
            yield self._empty
            return
        with self._shards.open(realm_key(scope).tenant) as store:
            yield store

    def _has_file(self, scope: Realm) -> bool:
        return self._shards.path(realm_key(scope).tenant).exists()

    def _drop_unused(self, tenant: str) -> None:
        """Delete a file that a refused call has made, where nothing was stored in it since."""
        with self._shards.alone(tenant) as alone:
            if alone is None:
                return
            everything = MemoryOwner(tenant)
            waiting = int(alone.run(alone.ports.describe())["audit_waiting"])
            if waiting or alone.run(alone.ports.erase(everything, preview=True)).anything:
                return
            alone.close()
            self._shards.delete(tenant)

    @property
    def open_files(self) -> int:
        """How many shards are open."""
        return len(self._shards)

    def __enter__(self) -> ShardedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish the calls under way and close every file."""
        self._shards.close()
        self._empty.close()

    def erase(self, scope: Realm, *, cascade: bool = True) -> ErasureResult:
        """Remove everything that the realm covers; a tenant-wide erasure deletes the file.

        The file goes once its record is in the audit log and while no other process has it
        open; where that cannot be, it stays, emptied, and the next such erasure deletes it.
        """
        realm = realm_key(scope)
        if realm != RealmKey(realm.tenant) or not self._has_file(scope):
            with self._shard(scope) as store:
                return store.erase(scope, cascade=cascade)
        with self._shards.alone(realm.tenant) as alone:
            if alone is not None:
                return self._deleted(alone, scope, realm.tenant)
        with self._shard(scope) as store:
            return store.erase(scope, cascade=cascade)

    def _deleted(self, store: SQLiteStore, scope: Realm, tenant: str) -> ErasureResult:
        result = store.erase(scope)
        waiting = int(store.run(store.ports.describe())["audit_waiting"])
        store.close()
        if not waiting:
            self._shards.delete(tenant)
        return result

    def compact(self, scope: Realm) -> None:
        """Give back the space of what was deleted in the file of the realm's tenant."""
        with self._shard(scope) as store:
            store.compact()

    def verify_audit(self, scope: Realm, *, receipt: str | None = None) -> VerifyResult | None:
        """What the audit log holds, as the file of the realm's tenant knows it.

        A tenant without a file has the log followed alone; None without a log.
        """
        if self._log is not None and not self._has_file(scope):
            return verify_audit_log(self._log.path, receipt=receipt)
        with self._shard(scope) as store:
            return store.verify_audit(receipt=receipt)

    def restart_audit(self, scope: Realm) -> bool:
        """Let the file of the realm's tenant go on with the log as it is; see `SQLiteStore`."""
        with self._shard(scope) as store:
            return store.restart_audit()

    add = _of_tenant(SQLiteStore.add, creates=True)
    import_stream = _of_tenant(SQLiteStore.import_stream, creates=True)
    import_file = _of_tenant(SQLiteStore.import_file, creates=True)
    get = _of_tenant(SQLiteStore.get)
    search = _of_tenant(SQLiteStore.search)
    supersede = _of_tenant(SQLiteStore.supersede)
    forget = _of_tenant(SQLiteStore.forget)
    history = _of_tenant(SQLiteStore.history)
    export = _of_tenant(SQLiteStore.export)
    export_stream = _of_tenant(SQLiteStore.export_stream)
    export_file = _of_tenant(SQLiteStore.export_file)
    count = _of_tenant(SQLiteStore.count)
    sweep_expired = _of_tenant(SQLiteStore.sweep_expired)
    usage = _of_tenant(SQLiteStore.usage)
    reindex = _of_tenant(SQLiteStore.reindex)
