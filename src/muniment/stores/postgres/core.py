"""What the faces of one PostgreSQL store share: transactions, the clock, images and vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import cast

import psycopg

from muniment import forks
from muniment.domain.clock import Clock, clock_of
from muniment.errors import MemoryStoreError
from muniment.evidence.weights import DEFAULT_NAME, ranking_named
from muniment.governance.audit_record import AuditEntry
from muniment.governance.usage import ServedCounts
from muniment.ports import MemoryEmbedder
from muniment.stores.embedding import Embedded, RowEmbedder, mixed
from muniment.stores.limits import Limits
from muniment.stores.postgres import connections
from muniment.stores.postgres.audit import append
from muniment.stores.postgres.change import Change, ChangeJob
from muniment.stores.postgres.errors import explained
from muniment.stores.postgres.images import Images
from muniment.stores.postgres.migrate import require_known_schema
from muniment.stores.postgres.session import Answer, Job, Session
from muniment.stores.postgres.totals import add_served
from muniment.stores.postgres.transactions import Transactions
from muniment.stores.postgres.vectors import Halfvec, halfvec
from muniment.stores.rehearsal import Rehearsed

_MODEL, _WIDTH = "embedding_model", "embedding_width"
_BYTES_A_NUMBER = 4


class Core(forks.Unshared):
    """Shared by the faces; not public."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None,
        embedder: MemoryEmbedder | None,
        embedder_name: str | None,
        connections_most: int,
        timeout_seconds: float,
        image_bytes: int,
        limits: Limits,
        audited: bool,
        ranking: str = DEFAULT_NAME,
    ) -> None:
        self.ranking_name, self.ranking = ranking, ranking_named(ranking)
        named = None if embedder is None else getattr(embedder, "model_name", "custom")
        self._model: str | None = embedder_name or named
        self._dimension: int | None = getattr(embedder, "dimension", None)
        self.url = url
        self._connections_most = connections_most
        self._timeout_seconds = timeout_seconds
        self._image_bytes = image_bytes
        self.reindexing = False
        self.clock = clock_of(clock)
        self._begin()
        forks.tell(self)
        self.embedder = RowEmbedder(embedder)
        self.limits = limits
        self.audited = audited

    def _begin(self) -> None:
        self._prepared = connections.Prepared()
        self._pool = connections.make_pool(
            self.url,
            size=self._connections_most,
            wait_seconds=self._timeout_seconds,
            prepared=self._prepared,
        )
        self._transactions = Transactions(self._pool, timeout_seconds=self._timeout_seconds)
        self._opening = asyncio.Lock()
        self._state = "new"
        self.images = Images(self._image_bytes)
        self.served = ServedCounts(self.clock)

    def begin_anew(self) -> None:
        """In a process that was forked off, whose connections are the other one's."""
        forks.give_up(self._pool, self._transactions)
        closed = self._state == "closed"
        self._begin()
        self._state = "closed" if closed else "new"

    # -- opening ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Check the server and open the pool; does nothing where that is done."""
        async with self._opening:
            if self._state == "closed":
                raise MemoryStoreError("the store is closed")
            if self._state == "new":
                await self._open()
                self._state = "open"

    async def _open(self) -> None:
        connection = await connections.connect(self.url)
        try:
            self._prepared.server = server = await connections.examined(connection)
            await connections.require_role(connection)
            require_known_schema(await connections.schema_seen_by_role(connection))
        except psycopg.Error as error:
            raise explained(error) from None
        finally:
            await connection.close()
        self._transactions.path = f"{connections.SCHEMA}, {server.vector_schema}"
        await self._pool.open()
        await self._require_same_model()

    async def close(self) -> None:
        """Close every connection; calls in progress end first."""
        async with self._opening:
            if self._state == "open":
                await self._transactions.drained()
                await self._pool.close()
            self._state = "closed"

    @property
    def server(self) -> connections.Server | None:
        """The server, once it was opened."""
        return self._prepared.server

    async def read(self, tenant: str, job: Job[Answer], *, seconds: float | None = None) -> Answer:
        """Run `job` in a transaction that only reads; see `Transactions`.

        With a time limit of its own, in `seconds`, all of it sees one instant.
        """
        if self._state != "open":
            await self.open()
        return await self._transactions.read(tenant, job, seconds=seconds)

    async def write(self, tenant: str, job: Job[Answer], *, seconds: float | None = None) -> Answer:
        """Run `job` in a transaction; see `Transactions`."""
        if self._state != "open":
            await self.open()
        return await self._transactions.write(tenant, job, seconds=seconds)

    async def change(
        self,
        tenant: str,
        job: ChangeJob[Answer],
        *,
        may_wait: bool = False,
        seconds: float | None = None,
    ) -> Answer:
        """Run a job that writes memories or conversations; done once it is durable.

        What it records is in the audit table by then. Where that is damaged, AuditError and
        nothing changed; a job that `may_wait` goes on.
        """
        now, limits = self.clock(), self.limits

        async def run(session: Session) -> Answer:
            if limits.quotas.limited:  # one writer of the tenant at a time, before any other lock
                await session.all("lock_quota", {})
            entries: list[AuditEntry] = []
            change = Change(session, now, entries.append if self.audited else None, limits)
            answer = await job(change)
            if entries:
                await append(session, entries, may_wait=may_wait)
            return answer

        return await self.write(tenant, run, seconds=seconds)

    async def rehearse(self, tenant: str, job: ChangeJob[Answer]) -> Answer:
        """What a job would answer: it is run, undone, and recorded nowhere."""
        now = self.clock()

        async def run(session: Session) -> Answer:
            raise Rehearsed(await job(Change(session, now, None, self.limits)))

        try:
            return await self.write(tenant, run)
        except Rehearsed as done:
            return cast(Answer, done.answer)

    async def store_served(self, tenant: str | None = None) -> None:
        """Write what searches served, of one tenant or of all, since it was last written."""
        taken = self.served.take()
        for each in sorted({key[0] for key in taken}):
            mine = {key: served for key, served in taken.items() if key[0] == each}
            if tenant not in (None, each):
                self.served.put_back(mine)
                continue
            days = {day: served for (_, day), served in mine.items()}
            try:
                await self.write(each, partial(add_served, days=days))
            except BaseException:
                self.served.put_back(mine)
                raise

    # -- vectors: one model a database -----------------------------------------------------

    async def admit(
        self, session: Session, vectors: Sequence[bytes | None]
    ) -> list[Halfvec | None]:
        """`vectors`, those of another dimension left out: such a row is found by its words.

        The first vector of a database decides its model and dimension.
        """
        first = next((vector for vector in vectors if vector is not None), None)
        if first is None:
            return [None] * len(vectors)
        width = await recorded_width(session)
        if width is None:
            width = await self._record(session, len(first) // _BYTES_A_NUMBER)
        size = width * _BYTES_A_NUMBER
        fits = (v if v is not None and len(v) == size else None for v in vectors)
        return [halfvec(vector) for vector in fits]

    async def admit_embedded(self, session: Session, embedded: Embedded) -> Halfvec | None:
        """`admit` for one that the caller may have made: MemoryStoreError where that does not
        fit.
        """
        (vector,) = await self.admit(session, [embedded.vector])
        if vector is None and embedded.given:
            raise mixed(f"of {len(embedded.vector or b'') // _BYTES_A_NUMBER} dimensions")
        return vector

    async def is_of_this_model(self, session: Session, probe: bytes | None) -> bool:
        """Whether the database's vectors are this embedder's, of which `probe` is one."""
        model, width = await recorded(session, _MODEL), await recorded_width(session)
        same_width = probe is None or width == len(probe) // _BYTES_A_NUMBER
        return width is None or (model == self._model and same_width)

    async def _record(self, session: Session, width: int) -> int:
        await session.run("record_setting", {"name": _WIDTH, "value": str(width)})
        if self._model is not None:
            await session.run("record_setting", {"name": _MODEL, "value": self._model})
        return await recorded_width(session) or width

    async def _require_same_model(self) -> None:
        async def job(session: Session) -> tuple[str | None, int | None]:
            return await recorded(session, _MODEL), await recorded_width(session)

        model, width = await self._transactions.read("", job)
        if self.reindexing:
            return
        if None not in (model, self._model) and model != self._model:
            raise mixed("of another model")
        if None not in (width, self._dimension) and width != self._dimension:
            raise mixed(f"of {self._dimension} dimensions")


async def cursor_secret(session: Session) -> bytes:
    """What seals this database's cursors; made with its schema."""
    return bytes.fromhex(await recorded(session, "cursor_secret") or "")


async def recorded(session: Session, name: str) -> str | None:
    """A setting that is everybody's."""
    row = await session.one("setting", {"name": name})
    return None if row is None else str(row[0])


async def recorded_width(session: Session) -> int | None:
    """How many numbers the database's vectors have; None while there is none."""
    width = await recorded(session, _WIDTH)
    return None if width is None else int(width)
