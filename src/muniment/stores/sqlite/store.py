"""The async SQLite store: one object, its faces, and the verbs by realm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Self

import apsw

from muniment.domain.clock import Clock
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.domain.visibility import audiences
from muniment.errors import MemoryStoreError
from muniment.evidence.weights import DEFAULT_NAME
from muniment.governance.audit import AuditLog
from muniment.governance.audit_verification import VerifyResult
from muniment.governance.quotas import Totals
from muniment.governance.tokens import TokenEstimator
from muniment.governance.usage import Served
from muniment.ports import MemoryEmbedder
from muniment.stores.driven import in_thread
from muniment.stores.erasure import ErasureResult
from muniment.stores.limits import MAX_RESULTS, MAX_TEXT_BYTES, Limits
from muniment.stores.rows import micros
from muniment.stores.sqlite import outbox, realms
from muniment.stores.sqlite.conversations import SQLiteConversations
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.encryption import EncryptionKey
from muniment.stores.sqlite.entries import SQLiteEntries
from muniment.stores.sqlite.erasing import erase_realm, sweep
from muniment.stores.sqlite.exchanges import SQLiteExchanges
from muniment.stores.sqlite.images import DEFAULT_BUDGET_BYTES
from muniment.stores.sqlite.journal import compact, emptied, is_pending, settle
from muniment.stores.sqlite.memories import SQLiteMemories
from muniment.stores.sqlite.migrate import schema_version
from muniment.stores.sqlite.reindexing import reindex
from muniment.stores.sqlite.service import SQLiteService
from muniment.stores.sqlite.totals import served_on
from muniment.stores.sqlite.working import SQLiteWorkingMemory
from muniment.stores.store_face import Store

_log = logging.getLogger(__name__)


class AsyncSQLiteStore(Store):
    """Conversations, memories and working state in one SQLite file.

    `memories`, `conversations`, `working` and `service` implement the ports; the store's own
    methods take a realm (or an owner). Use as an async context manager, or `open` and `aclose`
    it; the first call opens it otherwise. `synchronous` is SQLite's level: FULL, NORMAL or
    EXTRA; `image_bytes` bounds what is kept in memory for searching, `max_text_bytes` (1 to
    1 MiB) a text. Quotas are a tenant's: how many memories, and how many tokens of them by
    `token_estimator` (one for 3 bytes by default); None is no quota. With `audit`, a log or its
    path, every write of memories and conversations is in that log once it is acknowledged;
    AuditError where it cannot be. With an `encryption_key` (a passphrase, or what gives it) the
    file and its journals are encrypted; the audit log and exports are not. Raises
    MemoryStoreError where the file cannot be used.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        clock: Clock | None = None,
        embedder: MemoryEmbedder | None = None,
        embedder_name: str | None = None,
        synchronous: str = "FULL",
        image_bytes: int = DEFAULT_BUDGET_BYTES,
        audit: AuditLog | str | PathLike[str] | None = None,
        max_text_bytes: int = MAX_TEXT_BYTES,
        max_results: int = MAX_RESULTS,
        quota_entries: int | None = None,
        quota_tokens: int | None = None,
        token_estimator: TokenEstimator | None = None,
        ranking: str = DEFAULT_NAME,
        encryption_key: EncryptionKey | None = None,
    ) -> None:
        self._core = Core(
            path,
            clock=clock,
            embedder=embedder,
            embedder_name=embedder_name,
            synchronous=synchronous,
            image_bytes=image_bytes,
            audit=audit,
            ranking=ranking,
            encryption_key=encryption_key,
            limits=Limits.of(
                max_text_bytes=max_text_bytes,
                max_results=max_results,
                quota_entries=quota_entries,
                quota_tokens=quota_tokens,
                token_estimator=token_estimator,
            ),
        )
        super().__init__(self._core)
        self.memories = SQLiteMemories(self._core)
        self.conversations = SQLiteConversations(self._core)
        self.working = SQLiteWorkingMemory(self._core)
        self.entries = SQLiteEntries(self._core)
        self.service = SQLiteService(self._core)
        self.exchanges = SQLiteExchanges(self._core)

    async def open(self, *, reindexing: bool = False) -> Self:
        """Open and migrate the file; answers the store itself.

        `reindexing` lets a file in whose vectors are of another model: call `reindex` next.
        """
        self._core.reindexing = reindexing
        await self._core.engine.open_async()
        return self

    async def aclose(self) -> None:
        """Finish queued work and close the file.

        What searches served since the last write is given up, with a WARNING, where the file
        takes no write.
        """
        try:
            await self._core.store_served()
        except MemoryStoreError as error:
            _log.warning("the last figures of usage were not stored: %s", error)
        finally:
            await in_thread(self._core.engine.close)

    async def opening(
        self, identity: ConversationIdentity, query: MemoryQuery, *, limit: int
    ) -> tuple[tuple[ConversationMessage, ...], tuple[Memory, ...]]:
        """The newest `limit` (1..1000) messages and what a query without text lists: one read."""
        recent, listed = self.conversations.recent(identity, limit), self.memories.listed(query)
        return await self._core.engine.read_async(lambda db: (recent(db), listed(db)))

    async def history(self, place: Scope | MemoryOwner, memory_id: str) -> tuple[Memory, ...]:
        """The chain of supersessions that the memory is part of, oldest first.

        An owner asks by visibility, a Scope by coverage; empty where neither finds it.
        """
        find = self._finder(place)
        return await self._core.engine.read_async(lambda db: realms.chain(db, find, memory_id))

    def _finder(self, place: Scope | MemoryOwner) -> realms.Find:
        if isinstance(place, MemoryOwner):
            return realms.by_visibility(audiences(place), micros(self._core.clock()))
        return realms.by_coverage(realm_key(place))

    async def _count(self, realm: RealmKey) -> int:
        return await self._core.engine.read_async(lambda db: realms.count(db, realm))

    async def _foresee(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        would = await self._core.rehearse(
            lambda change: erase_realm(change, realm, cascade=cascade)
        )
        return would.result

    async def _erase(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        removed = await self._core.change(
            lambda change: erase_realm(change, realm, cascade=cascade), may_wait=True
        )
        self._core.images.forget(realm.tenant, removed.audiences)
        if realm == RealmKey(realm.tenant):
            self._core.served.forget(realm.tenant)
        return replace(removed.result, pending=not await self._core.engine.apart_async(settle))

    async def _sweep(self, realm: RealmKey) -> int:
        count, audiences = await self._core.change(
            lambda change: sweep(change, realm), may_wait=True
        )
        if count:
            self._core.images.forget(realm.tenant, audiences)
            await self._core.engine.apart_async(emptied)
        return count

    async def compact(self) -> None:
        """Give the space of what was deleted back, and complete erasures that are pending.

        MemoryStoreError while another connection reads or writes the file.
        """
        spilling = not self._core.engine.encrypted
        await self._core.engine.apart_async(partial(compact, spilling=spilling))

    async def _used(self, realm: RealmKey, day: str) -> tuple[Totals, Served]:
        await self._core.store_served()
        return await self._core.engine.read_async(
            lambda db: (realms.stored(db, realm), served_on(db, realm.tenant, day))
        )

    async def reindex(
        self,
        place: Scope | MemoryOwner | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Rebuild words and embeddings in batches, of everything by default; counts the rows.

        `progress` gets the number done. A run that was interrupted goes on where it stopped.
        """
        realm = None if place is None else realm_key(place)
        return await reindex(self._core, realm, progress)

    async def verify_audit(self, *, receipt: str | None = None) -> VerifyResult | None:
        """What the audit log holds, followed whole; None without a log. Never raises for its state.

        It must continue from the file's own anchor, so that a cut-off end is found, and hold
        every record of this file; with an erasure's `receipt`, the record of that erasure.
        """
        return await self._core.verify_audit(receipt)

    async def restart_audit(self) -> bool:
        """Go on with the audit log as it is now, after a damaged one was put away.

        A record in it holds what is given up: the number of records that this file knew of, and
        the last one's hash. False, and nothing recorded, where nothing is given up. AuditError
        where the log is not sound in itself. Other processes on the file must be started anew.
        """
        return await self._core.restart_audit()

    async def describe(self) -> dict[str, str]:
        """What the store is made of, for a doctor: versions, never names or contents.

        `audit_waiting` is the number of records that are not in the log yet, `erasure_pending`
        whether bytes of an erasure are still to go, `encrypted` whether the file is (yes or no).
        """
        waiting = await self._core.engine.read_async(outbox.count)
        pending = await self._core.engine.read_async(is_pending)
        return {
            "store": "sqlite",
            "sqlite": apsw.sqlite_lib_version(),
            "schema": str(schema_version()),
            "ranking": self._core.ranking_name,
            "audit_waiting": str(waiting),
            "erasure_pending": "yes" if pending else "no",
            "encrypted": "yes" if self._core.engine.encrypted else "no",
        }
