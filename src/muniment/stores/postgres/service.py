"""What replicas of a service share beside the memory: leases and keyed requests."""

from __future__ import annotations

from collections.abc import Mapping

from muniment.domain.conversation import ConversationIdentity
from muniment.errors import NotFoundError
from muniment.ports import KeyedRequest
from muniment.stores.postgres.audiences import digest_of_parts
from muniment.stores.postgres.core import Core
from muniment.stores.postgres.session import Session
from muniment.stores.rows import micros

_MICROS = 1_000_000


class PostgresService:
    """The service face of a PostgreSQL store."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def acquire(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> float:
        """0 where `holder` has the session's lease now; else seconds until it may be free."""
        now = self._now()
        ends = now + round(ttl_seconds * _MICROS)
        values = {"talk": _talk(identity), "holder": holder, "expires_at": ends, "now": now}

        async def job(session: Session) -> float:
            if await session.one("acquire_lease", values) is not None:
                return 0.0
            row = await session.one("lease_ends", values)
            return 0.0 if row is None else max(0.0, (row[0] - now) / _MICROS)

        return await self._core.write(identity.tenant_id, job)

    async def renew(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> bool:
        """Keep the lease for longer; False where it is not `holder`'s any more."""
        ends = self._now() + round(ttl_seconds * _MICROS)
        values = {"talk": _talk(identity), "holder": holder, "expires_at": ends}
        row = await self._core.write(
            identity.tenant_id, lambda session: session.one("renew_lease", values)
        )
        return row is not None

    async def release(self, identity: ConversationIdentity, *, holder: str) -> None:
        """Free the session where `holder` has it."""
        values = {"talk": _talk(identity), "holder": holder}
        await self._core.write(
            identity.tenant_id, lambda session: session.run("release_lease", values)
        )

    async def begin(
        self, tenant_id: str, user_id: str, key: str, request: KeyedRequest, *, ttl_seconds: int
    ) -> KeyedRequest:
        """Keep `request` under the user's key; the one that is kept already, where there is."""
        now = self._now()
        values = {
            "request": digest_of_parts(user_id, key),
            "talk": digest_of_parts(user_id, request.session_id),
            "fingerprint": request.fingerprint,
            "session": request.session_id,
            "question": request.question_id,
            "expires_at": now + ttl_seconds * _MICROS,
        }

        async def job(session: Session) -> KeyedRequest:
            await session.run("sweep_requests", {"now": now})
            await session.run("begin_request", values)
            held = await session.one("keyed_request", values)
            assert held is not None  # noqa: S101 - just inserted
            return KeyedRequest(*held)

        return await self._core.write(tenant_id, job)

    async def finish(
        self, tenant_id: str, user_id: str, key: str, *, answer_id: str, envelope: str
    ) -> None:
        """Note the answer of a kept request."""
        values = {
            "request": digest_of_parts(user_id, key),
            "answer": answer_id,
            "envelope": envelope,
        }
        await self._core.write(tenant_id, lambda session: session.run("finish_request", values))

    async def sizes(self) -> Mapping[str, int]:
        """The bytes of the database."""
        row = await self._core.read("", lambda session: session.one("sizes", {}))
        return {"bytes": 0 if row is None else row[0]}

    def _now(self) -> int:
        return micros(self._core.clock())


def _talk(identity: ConversationIdentity) -> bytes:
    return digest_of_parts(identity.user_id, identity.session_id)


async def require_lease(session: Session, identity: ConversationIdentity, holder: str) -> None:
    """NotFoundError where `holder` has the session's lease no more; it stays until the commit."""
    values = {"talk": _talk(identity), "holder": holder}
    if await session.one("lease_held", values) is None:
        raise NotFoundError("no such session")
