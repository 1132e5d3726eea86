"""Transactions: opened within one tenant, bounded in time, run again where that is safe."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
from dataclasses import dataclass

import psycopg
from psycopg import sql

from muniment.errors import MemoryStoreError
from muniment.stores.postgres.connections import ROLE, SCHEMA, Connection, Pool
from muniment.stores.postgres.errors import UNDONE, explained, is_lost
from muniment.stores.postgres.session import Answer, Job, Session

_ATTEMPTS_BESIDE_THE_POOLS = 4  # after a restart every pooled connection fails once
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5
_CLOSING_SECONDS = 5.0
_WAITS_FOR_AN_END = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_log = logging.getLogger(__name__)

# One message opens a transaction that writes, or that sees one instant. All of it is local to the
# transaction, so that nothing is left behind where a pooler gives the server connection to
# somebody else.
_SETTINGS = (
    "search_path",
    "muniment.tenant",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
)
_BEGIN = sql.SQL("BEGIN ISOLATION LEVEL {mode}; SET LOCAL ROLE {role}; SELECT {settings}")
_WRITES = sql.SQL("READ COMMITTED READ WRITE")
_ONE_INSTANT = sql.SQL("REPEATABLE READ READ ONLY")
# A server that crashes may give a number again that it had given before. Its statistics start
# anew then, and at another server after a failover: when they did tells the two apart.
_BEGAN = sql.SQL("pg_stat_get_bgwriter_stat_reset_time()::text")
_NUMBERED = sql.SQL("; SELECT pg_current_xact_id()::text, {began}").format(began=_BEGAN)
_STATUS = sql.SQL("SELECT pg_xact_status({number}::xid8), {began}")
# A message that only reads is a transaction of its own: this goes ahead in it.
_ALONE = (
    b"SELECT set_config('role', %(role)s, true), set_config('transaction_read_only', 'on', true),"
    b" set_config('search_path', %(path)s, true), set_config('muniment.tenant', %(tenant)s, true),"
    b" set_config('statement_timeout', %(wait)s, true), set_config('lock_timeout', %(wait)s, true)"
)


@dataclass(slots=True)
class _Attempt:
    """Where one call is: its connection, and its transaction's number once it may change things."""

    connection: Connection | None = None
    number: str | None = None
    began: str | None = None  # when the server that gave the number did
    committing: bool = False
    seconds: float = 0.0
    snapshot: bool = False
    severed: bool = False

    @property
    def milliseconds(self) -> str:
        """How long any of its statements may take."""
        return str(int(self.seconds * 1000))

    def sever(self) -> None:
        """Cut the connection under whoever waits for it; a hung server cannot hold a caller."""
        self.severed = True
        if self.connection is None or self.connection.closed:
            return
        with contextlib.suppress(OSError, psycopg.Error):
            line = socket.socket(fileno=os.dup(self.connection.pgconn.socket))
            with line:
                line.shutdown(socket.SHUT_RDWR)


class Transactions:
    """Runs jobs in transactions of a pool. Raises MemoryStoreError for what PostgreSQL reports.

    `timeout_seconds` bounds a call as a whole, its waiting and its further attempts included.
    """

    def __init__(self, pool: Pool, *, timeout_seconds: float) -> None:
        self._pool = pool
        self._timeout = timeout_seconds
        self._running: set[asyncio.Task[object]] = set()
        self.path = SCHEMA

    async def read(self, tenant: str, job: Job[Answer], *, seconds: float | None = None) -> Answer:
        """The job's answer; it runs again where the connection is lost or the server asks so.

        Each of its messages sees what was committed before it: no transaction stays open between.
        With `seconds` in the place of the usual time limit, it sees one instant throughout.
        """
        attempt = _Attempt(seconds=seconds or self._timeout, snapshot=seconds is not None)
        return await self._bounded(attempt, tenant, job, writes=False)

    async def write(self, tenant: str, job: Job[Answer], *, seconds: float | None = None) -> Answer:
        """The job's answer once its changes are durable.

        It runs again only where the attempt before is known to have changed nothing. Where a
        connection is lost while committing, the server is asked what became of the transaction.
        """
        attempt = _Attempt(seconds=seconds or self._timeout)
        return await self._bounded(attempt, tenant, job, writes=True)

    async def drained(self) -> None:
        """Wait a little for calls that were given up and have yet to notice it."""
        if self._running:
            await asyncio.wait(self._running, timeout=_CLOSING_SECONDS)

    async def _bounded(
        self, attempt: _Attempt, tenant: str, job: Job[Answer], *, writes: bool
    ) -> Answer:
        task = asyncio.ensure_future(self._attempts(attempt, tenant, job, writes=writes))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            done, _ = await asyncio.wait({task}, timeout=attempt.seconds)
        except asyncio.CancelledError:
            self._give_up(attempt, task)
            raise
        if not done:
            self._give_up(attempt, task)
            raise MemoryStoreError("PostgreSQL did not answer in time")
        return task.result()

    @staticmethod
    def _give_up(attempt: _Attempt, task: asyncio.Task[Answer]) -> None:
        attempt.sever()
        if attempt.connection is None:
            task.cancel()
        task.add_done_callback(_heard)

    async def _attempts(
        self, attempt: _Attempt, tenant: str, job: Job[Answer], *, writes: bool
    ) -> Answer:
        pause = _FIRST_PAUSE_SECONDS
        for left in reversed(range(self._pool.max_size + _ATTEMPTS_BESIDE_THE_POOLS)):
            try:
                return await self._once(attempt, tenant, job, writes=writes)
            except _Undone as failure:
                if not left or attempt.severed:
                    raise explained(failure.reason) from None
                _log.info("transaction runs again", extra={"error": type(failure.reason).__name__})
                if failure.stale:
                    continue  # the next connection of the pool may be a sound one
            await asyncio.sleep(pause * (1 + random.random()))  # noqa: S311 - spreads retries
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        raise AssertionError("unreachable")

    async def _once(
        self, attempt: _Attempt, tenant: str, job: Job[Answer], *, writes: bool
    ) -> Answer:
        """One attempt; _Undone where it changed nothing and another may succeed."""
        connection, session, attempt.committing = None, None, False
        answer: Answer
        try:
            connection = attempt.connection = await self._pool.getconn()
            if not writes and not attempt.snapshot:
                session = self._alone(attempt, connection, tenant)
                return await job(session)
            await self._begin(attempt, connection, tenant, writes=writes)
            session = Session(connection, tenant)
            answer = await job(session)
            attempt.committing = True
            await connection.execute(b"COMMIT")
        except UNDONE as error:
            raise _Undone(error) from None
        except psycopg.Error as error:
            if connection is None or not is_lost(error, connection):
                raise explained(error) from None
            if not (writes and attempt.committing and await self._committed(attempt)):
                raise _Undone(error, stale=session is None or not session.heard) from None
        finally:
            attempt.connection = None
            if connection is not None:
                await self._returned(connection)
        return answer

    async def _begin(
        self, attempt: _Attempt, connection: Connection, tenant: str, *, writes: bool
    ) -> None:
        begin = _BEGIN.format(
            mode=_WRITES if writes else _ONE_INSTANT,
            role=sql.Identifier(ROLE),
            settings=_local(self.path, tenant, *[attempt.milliseconds] * 3),
        )
        cursor = await connection.execute(begin + _NUMBERED if writes else begin)
        while cursor.nextset():
            pass
        if writes:
            row = await cursor.fetchone()
            attempt.number, attempt.began = (None, None) if row is None else row

    def _alone(self, attempt: _Attempt, connection: Connection, tenant: str) -> Session:
        wait = attempt.milliseconds
        values = {"role": ROLE, "path": self.path, "tenant": tenant, "wait": wait}
        return Session(connection, tenant, (_ALONE, values))

    async def _committed(self, attempt: _Attempt) -> bool:
        """Whether a transaction whose end was not heard of was committed."""
        for pause in _WAITS_FOR_AN_END:
            status, began = None, None
            with contextlib.suppress(psycopg.Error):
                status, began = await self._status(attempt)
            if status == "aborted":
                return False
            if status == "committed":
                if began == attempt.began:
                    return True
                break  # this one, or one that was given its number since
            await asyncio.sleep(pause)
        raise MemoryStoreError(
            "the connection to PostgreSQL was lost while a change was committed; "
            "whether it was stored is unknown"
        )

    async def _status(self, attempt: _Attempt) -> tuple[str | None, str | None]:
        async with self._pool.connection() as connection:
            query = _STATUS.format(number=sql.Literal(attempt.number), began=_BEGAN)
            row = await (await connection.execute(query)).fetchone()
            return (None, None) if row is None else (row[0], row[1])

    async def _returned(self, connection: Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            if not connection.closed and connection.info.transaction_status:
                await connection.execute(b"ROLLBACK")
        await self._pool.putconn(connection)


def _local(*values: str) -> sql.Composed:
    """The settings, each for this transaction only."""
    each = sql.SQL("set_config({}, {}, true)")
    return sql.SQL(", ").join(
        each.format(name, value) for name, value in zip(_SETTINGS, values, strict=True)
    )


class _Undone(Exception):
    """An attempt that is known to have changed nothing, and why it ended.

    `stale`: its connection was lost before it was given to us.
    """

    def __init__(self, reason: BaseException, *, stale: bool = False) -> None:
        super().__init__()
        self.reason = reason
        self.stale = stale


def _heard(task: asyncio.Task[object]) -> None:
    """Take a given-up call's error, which nobody else will."""
    if not task.cancelled():
        task.exception()
