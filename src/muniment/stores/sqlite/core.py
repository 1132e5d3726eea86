"""What the faces of one SQLite store share: the engine, the clock, images and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypeVar, cast

import apsw

from muniment.domain.clock import Clock, clock_of
from muniment.errors import AuditError, MemoryConfigurationError
from muniment.evidence.weights import DEFAULT_NAME, ranking_named
from muniment.governance.audit import GENESIS, AuditLog, audit_log
from muniment.governance.audit_verification import VerifyResult, verify_for_store
from muniment.governance.usage import ServedCounts
from muniment.ports import MemoryEmbedder
from muniment.stores.driven import in_thread
from muniment.stores.embedding import Embedded, RowEmbedder, comparable, mixed
from muniment.stores.limits import Limits
from muniment.stores.rehearsal import Rehearsed
from muniment.stores.sqlite.change import Change, ChangeJob
from muniment.stores.sqlite.encryption import EncryptionKey
from muniment.stores.sqlite.engine import Engine
from muniment.stores.sqlite.errors import NoRoomError
from muniment.stores.sqlite.images import DEFAULT_BUDGET_BYTES, Images
from muniment.stores.sqlite.journal import settle
from muniment.stores.sqlite.outbox import Outbox, warn_without_log
from muniment.stores.sqlite.staging import drop_stale
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.totals import store_served

Answer = TypeVar("Answer")

_MODEL, _WIDTH = "embedding_model", "embedding_width"
_BYTES_A_NUMBER = 4


class Core:
    """Shared by the faces; not public."""

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None,
        embedder: MemoryEmbedder | None,
        embedder_name: str | None = None,
        synchronous: str = "FULL",
        image_bytes: int = DEFAULT_BUDGET_BYTES,
        audit: AuditLog | str | PathLike[str] | None = None,
        limits: Limits | None = None,
        ranking: str = DEFAULT_NAME,
        encryption_key: EncryptionKey | None = None,
    ) -> None:
        named = None if embedder is None else getattr(embedder, "model_name", "custom")
        self._model: str | None = embedder_name or named
        self._dimension: int | None = getattr(embedder, "dimension", None)
        self.ranking_name, self.ranking = ranking, ranking_named(ranking)
        self.reindexing = False
        self.audit = audit_log(audit)
        self.outbox = None if self.audit is None else Outbox(self.audit)
        self._keep = None if self.outbox is None else self.outbox.put
        self.engine = Engine(
            path,
            synchronous=synchronous,
            checks=self._checks,
            outbox=self.outbox,
            encryption_key=encryption_key,
            in_child=self._begin_anew,
        )
        self._image_bytes = image_bytes
        self.images = Images(image_bytes)
        self.clock = clock_of(clock)
        self.embedder = RowEmbedder(embedder)
        self.limits = limits or Limits()
        self.served = ServedCounts(self.clock)

    def _begin_anew(self) -> None:
        """In a process that was forked off; the counts of usage are the other one's to store."""
        self.images = Images(self._image_bytes)
        self.served = ServedCounts(self.clock)

    # -- writing ---------------------------------------------------------------------------

    async def change(self, job: ChangeJob[Answer], *, may_wait: bool = False) -> Answer:
        """Run a job that writes memories or conversations; done once it is durable.

        What it records is in the audit log by then. Where the log is damaged or missing,
        AuditError before anything changes; a job that `may_wait` goes on, its records waiting.
        """
        now, keep = self.clock(), self._keep

        def run(db: apsw.Connection) -> Answer:
            answer = job(Change(db, now, keep, self.limits))
            if self.served.any:
                store_served(db, self.served)
            return answer

        try:
            return await self.engine.write_async(run, needs_log=not may_wait)
        except NoRoomError:
            # What removes may go on with the room that the journal gives back.
            if not may_wait or not await self.engine.apart_async(settle):
                raise
        return await self.engine.write_async(run)

    async def rehearse(self, job: ChangeJob[Answer]) -> Answer:
        """What a job would answer: it is run, undone, and recorded nowhere."""
        now = self.clock()

        def run(db: apsw.Connection) -> Answer:
            raise Rehearsed(job(Change(db, now, None, self.limits)))

        try:
            return await self.engine.write_async(run)
        except Rehearsed as done:
            return cast(Answer, done.answer)

    async def store_served(self) -> None:
        """Write what searches served since the last write; nothing where they did not."""
        if self.served.any:
            await self.engine.write_async(lambda db: store_served(db, self.served))

    async def verify_audit(self, receipt: str | None) -> VerifyResult | None:
        """The log as this file knows it, after draining; None without a log."""
        if self.audit is None or self.outbox is None:
            return None
        path, outbox = self.audit.path, self.outbox
        try:
            anchor, waiting = await self.engine.apart_async(outbox.reach)
        except AuditError as error:
            return VerifyResult(False, 0, GENESIS, str(error))
        return await in_thread(
            lambda: verify_for_store(path, anchor.tail, waiting=waiting, receipt=receipt)
        )

    async def restart_audit(self) -> bool:
        """Go on with the log as it is now; see `AsyncSQLiteStore.restart_audit`."""
        if self.outbox is None:
            raise MemoryConfigurationError("audit: no log is configured")
        now, outbox = self.clock(), self.outbox
        return await self.engine.apart_async(lambda db: outbox.restart(db, now))

    # -- vectors: one model a file ---------------------------------------------------------

    def admit(self, db: apsw.Connection, vectors: Sequence[bytes | None]) -> list[bytes | None]:
        """`vectors`, those of another dimension left out: such a row is found by its words.

        The first vector of a file decides its model and dimension.
        """
        first = next((vector for vector in vectors if vector is not None), None)
        if first is None:
            return list(vectors)
        width = _recorded_width(db) or self._record(db, len(first) // _BYTES_A_NUMBER)
        size = width * _BYTES_A_NUMBER
        return [v if v is not None and len(v) == size else None for v in vectors]

    def admit_one(self, db: apsw.Connection, vector: bytes | None) -> bytes | None:
        """`admit` for one vector."""
        return None if vector is None else self.admit(db, [vector])[0]

    def admit_embedded(self, db: apsw.Connection, embedded: Embedded) -> bytes | None:
        """`admit` for one that the caller may have made: MemoryStoreError where that does not
        fit.
        """
        vector = self.admit_one(db, embedded.vector)
        if vector is None and embedded.given:
            raise mixed(f"of {len(embedded.vector or b'') // _BYTES_A_NUMBER} dimensions")
        return vector

    def comparable(
        self, db: apsw.Connection, values: Sequence[float] | None
    ) -> Sequence[float] | None:
        """A query's embedding; see `embedding.comparable`."""
        width = None if values is None else _recorded_width(db)
        return comparable(values, width)

    @property
    def model(self) -> str | None:
        """The embedder's name, None without one."""
        return self._model

    def is_of_this_model(self, db: apsw.Connection, probe: bytes | None) -> bool:
        """Whether the file's vectors are this embedder's, of which `probe` is one."""
        model, width = _recorded(db, _MODEL), _recorded_width(db)
        same_width = probe is None or width == len(probe) // _BYTES_A_NUMBER
        return width is None or (model == self._model and same_width)

    def forget_model(self, db: apsw.Connection) -> None:
        """Let the next vector decide model and dimension again."""
        db.execute(SQL["forget_model"])

    def _record(self, db: apsw.Connection, width: int) -> int:
        db.execute(SQL["record_setting"], (_WIDTH, str(width)))
        if self._model is not None:
            db.execute(SQL["record_setting"], (_MODEL, self._model))
        return width

    def _checks(self, db: apsw.Connection) -> None:
        self._require_same_model(db)
        drop_stale(db, self.clock())
        if self.outbox is None:
            warn_without_log(db)

    def _require_same_model(self, db: apsw.Connection) -> None:
        if self.reindexing:
            return
        model, width = _recorded(db, _MODEL), _recorded_width(db)
        if None not in (model, self._model) and model != self._model:
            raise mixed("of another model")
        if None not in (width, self._dimension) and width != self._dimension:
            raise mixed(f"of {self._dimension} dimensions")


def cursor_secret(db: apsw.Connection) -> bytes:
    """What seals this file's cursors; made with the file."""
    return bytes.fromhex(_recorded(db, "cursor_secret") or "")


def _recorded(db: apsw.Connection, name: str) -> str | None:
    row = db.execute(SQL["setting"], (name,)).fetchone()
    return None if row is None else str(row[0])


def _recorded_width(db: apsw.Connection) -> int | None:
    width = _recorded(db, _WIDTH)
    return None if width is None else int(width)
