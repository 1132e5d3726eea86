"""Working memory: one run's scratch state with a time to live."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muniment.domain.owner import MemoryOwner
from muniment.domain.working import checked_state, checked_ttl, working_key
from muniment.stores.postgres.audiences import digest_of
from muniment.stores.postgres.core import Core
from muniment.stores.postgres.session import Session
from muniment.stores.rows import dumps, micros

_MICROS = 1_000_000


class PostgresWorkingMemory:
    """The working-memory face of a PostgreSQL store."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def get(self, owner: MemoryOwner) -> Mapping[str, Any] | None:
        """A copy of the run's state; None where nothing is stored or its time is over."""
        place = working_key(owner)
        values = {"owner": digest_of(place.key), "now": micros(self._core.clock())}
        row = await self._core.read(
            place.tenant, lambda session: session.one("get_working", values)
        )
        if row is None:
            return None
        state: dict[str, Any] = json.loads(row[0])
        return state

    async def put(self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int) -> None:
        """Replace the run's state; it is gone after `ttl_seconds` (1 s to 365 days)."""
        place = working_key(owner)
        now = micros(self._core.clock())
        values = {
            "owner": digest_of(place.key),
            "user": place.user,
            "session": place.session,
            "state": dumps(checked_state(state)),
            "expires_at": now + checked_ttl(ttl_seconds) * _MICROS,
        }

        async def job(session: Session) -> None:
            await session.run("put_working", values)
            # At most 100: a put stays as cheap as ever.
            await session.run("sweep_working", {"now": now})

        await self._core.write(place.tenant, job)

    async def delete(self, owner: MemoryOwner) -> None:
        """Forget the run's state."""
        place = working_key(owner)
        values = {"owner": digest_of(place.key)}
        await self._core.write(place.tenant, lambda session: session.run("delete_working", values))
