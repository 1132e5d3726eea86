"""What replicas of a service share beside the memory: leases and keyed requests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import apsw

from muniment.domain.conversation import ConversationIdentity
from muniment.errors import NotFoundError
from muniment.ports import KeyedRequest
from muniment.stores.rows import micros
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.statements import SQL

_MICROS = 1_000_000


class SQLiteService:
    """The service face of a SQLite store."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def acquire(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> float:
        """0 where `holder` has the session's lease now; else seconds until it may be free."""
        now = self._core.clock()
        return await self._core.engine.write_async(
            lambda db: taken(db, identity, holder, now, ttl_seconds)
        )

    async def renew(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> bool:
        """Keep the lease for longer; False where it is not `holder`'s any more."""
        values = (*_session(identity), holder, self._now() + round(ttl_seconds * _MICROS))
        return await self._core.engine.write_async(
            lambda db: db.execute(SQL["renew_lease"], values).fetchone() is not None
        )

    async def release(self, identity: ConversationIdentity, *, holder: str) -> None:
        """Free the session where `holder` has it."""
        await self._core.engine.write_async(lambda db: release(db, identity, holder))

    async def begin(
        self, tenant_id: str, user_id: str, key: str, request: KeyedRequest, *, ttl_seconds: int
    ) -> KeyedRequest:
        """Keep `request` under the user's key; the one that is kept already, where there is."""
        now = self._now()
        given = (request.fingerprint, request.session_id, request.question_id)
        row = (tenant_id, user_id, key, *given, now + ttl_seconds * _MICROS)

        def job(db: apsw.Connection) -> KeyedRequest:
            db.execute(SQL["sweep_requests"], (now,))
            db.execute(SQL["begin_request"], row)
            held = db.execute(SQL["keyed_request"], row[:3]).fetchone()
            assert held is not None  # noqa: S101 - just inserted
            return KeyedRequest(*held)

        return await self._core.engine.write_async(job)

    async def finish(
        self, tenant_id: str, user_id: str, key: str, *, answer_id: str, envelope: str
    ) -> None:
        """Note the answer of a kept request."""
        values = (tenant_id, user_id, key, answer_id, envelope)
        await self._core.engine.write_async(
            lambda db: db.execute(SQL["finish_request"], values).fetchall()
        )

    async def sizes(self) -> Mapping[str, int]:
        """The bytes of the file, and those of them that are free."""
        total, free = await self._core.engine.read_async(lambda db: db.execute(SQL["sizes"]).get)
        return {"bytes": total, "free_bytes": free}

    def _now(self) -> int:
        return micros(self._core.clock())


def _session(identity: ConversationIdentity) -> tuple[str, str, str]:
    return identity.tenant_id, identity.user_id, identity.session_id


def taken(
    db: apsw.Connection,
    identity: ConversationIdentity,
    holder: str,
    now: datetime,
    ttl_seconds: float,
) -> float:
    """0 where `holder` has the session's lease from `now` on; else seconds until it may."""
    began = micros(now)
    values = (*_session(identity), holder, began + round(ttl_seconds * _MICROS), began)
    if db.execute(SQL["acquire_lease"], values).fetchone() is not None:
        return 0.0
    until = db.execute(SQL["lease_ends"], _session(identity)).get
    return (int(until) - began) / _MICROS


def release(db: apsw.Connection, identity: ConversationIdentity, holder: str) -> None:
    """Free the session where `holder` has it."""
    db.execute(SQL["release_lease"], (*_session(identity), holder)).fetchall()


def finish(
    db: apsw.Connection, identity: ConversationIdentity, key: str, answer_id: str, envelope: str
) -> None:
    """Note the answer of the user's kept request."""
    values = (identity.tenant_id, identity.user_id, key, answer_id, envelope)
    db.execute(SQL["finish_request"], values).fetchall()


def require_lease(db: apsw.Connection, identity: ConversationIdentity, holder: str) -> None:
    """NotFoundError where `holder` has the session's lease no more: its session may be deleted."""
    if db.execute(SQL["lease_held"], (*_session(identity), holder)).fetchone() is None:
        raise NotFoundError("no such session")
