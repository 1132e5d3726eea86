"""Working memory: one run's scratch state until its time is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from muniment.domain.frozen import thaw
from muniment.domain.owner import MemoryOwner
from muniment.domain.working import checked_state, checked_ttl, working_key
from muniment.stores.in_memory.tables import Tables, WorkingRow


class InMemoryWorking:
    """The working face: WorkingMemoryStore."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def get(self, owner: MemoryOwner) -> Mapping[str, Any] | None:
        """A copy of the run's state; None where there is none, or its time is over."""
        with self._tables.lock:
            row = self._tables.working.get(working_key(owner))
        if row is None or row.expires_at <= self._tables.clock():
            return None
        copy: dict[str, Any] = thaw(row.state)
        return copy

    async def put(self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int) -> None:
        """Replace the run's state; ValueError unless JSON, and 1 second to 365 days."""
        key, frozen = working_key(owner), checked_state(state)
        expires_at = self._tables.clock() + timedelta(seconds=checked_ttl(ttl_seconds))
        with self._tables.lock:
            self._tables.working[key] = WorkingRow(frozen, expires_at)

    async def delete(self, owner: MemoryOwner) -> None:
        """Forget the run's state; nothing there is no error."""
        with self._tables.lock:
            self._tables.working.pop(working_key(owner), None)
