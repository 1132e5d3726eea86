"""Working memory: one run's scratch state with a time to live."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import apsw

from muniment.domain.owner import MemoryOwner
from muniment.domain.working import checked_state, checked_ttl, working_key
from muniment.stores.rows import dumps, micros
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.statements import SQL


class SQLiteWorkingMemory:
    """The working-memory face of a SQLite store."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def get(self, owner: MemoryOwner) -> Mapping[str, Any] | None:
        """A copy of the run's state; None where nothing is stored or its time is over."""
        key, now = working_key(owner).key, micros(self._core.clock())
        row = await self._core.engine.read_async(
            lambda db: db.execute(SQL["get_working"], (key, now)).fetchone()
        )
        if row is None:
            return None
        state: dict[str, Any] = json.loads(row[0])
        return state

    async def put(self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int) -> None:
        """Replace the run's state; it is gone after `ttl_seconds` (1 s to 365 days)."""
        place = working_key(owner)
        text = dumps(checked_state(state))
        now = micros(self._core.clock())
        expires = now + checked_ttl(ttl_seconds) * 1_000_000
        row = (place.key, place.tenant, place.user, place.session, text, expires)

        def job(db: apsw.Connection) -> None:
            db.execute(SQL["put_working"], row)
            db.execute(SQL["sweep_working"], (now,))  # at most 100: a put stays as cheap as ever

        await self._core.engine.write_async(job)

    async def delete(self, owner: MemoryOwner) -> None:
        """Forget the run's state."""
        key = working_key(owner).key
        await self._core.engine.write_async(
            lambda db: db.execute(SQL["delete_working"], (key,)).fetchall()
        )
