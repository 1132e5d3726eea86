"""Working memory: one run's scratch state, a JSON object with a time to live."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from muniment.domain import checks
from muniment.domain.clock import Clock, clock_of
from muniment.domain.frozen import freeze_mapping, thaw
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.errors import MemoryScopeError
from muniment.ports import WorkingMemoryStore

DEFAULT_TTL_SECONDS = 3600
MAX_TTL_SECONDS = 365 * 24 * 3600

_FEW = 64

WorkingKey = tuple[str, str | None, str, str, str]


class WorkingMemory:
    """Scratch state by owner. Each call needs principal, session and run (MemoryScopeError
    otherwise); states go in and out as copies. Times to live are 1 second to 365 days.

    The owner is built from the authenticated request, never from fields that a user or a model
    supplies.
    """

    def __init__(
        self, store: WorkingMemoryStore, *, default_ttl_seconds: int = DEFAULT_TTL_SECONDS
    ) -> None:
        self._store = store
        self._default = checked_ttl(default_ttl_seconds)

    async def scratch(self, owner: MemoryOwner) -> dict[str, Any]:
        """A copy of the run's state; empty when nothing is stored."""
        working_key(owner)
        state: dict[str, Any] = thaw(await self._store.get(owner) or {})
        return state

    async def update(
        self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int | None = None
    ) -> None:
        """Replace the whole state. ValueError for what JSON cannot represent."""
        working_key(owner)
        ttl = self._default if ttl_seconds is None else checked_ttl(ttl_seconds)
        await self._store.put(owner, thaw(freeze_mapping("state", state)), ttl_seconds=ttl)

    async def clear(self, owner: MemoryOwner) -> None:
        """Forget the run's state."""
        working_key(owner)
        await self._store.delete(owner)


class InMemoryWorkingMemoryStore:
    """Working memory of this process."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock_of(clock)
        self._states: dict[WorkingKey, tuple[datetime, Mapping[str, Any]]] = {}
        self._ends: list[tuple[datetime, int, WorkingKey]] = []
        self._puts = count()  # keeps two ends at one instant from being compared by their keys

    async def get(self, owner: MemoryOwner) -> Mapping[str, Any] | None:
        """A copy of the state, None when there is none or its time is over."""
        expires, state = self._states.get(working_key(owner), (None, {}))
        if expires is None or expires <= self._clock():
            return None
        copy: dict[str, Any] = thaw(state)
        return copy

    async def put(self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int) -> None:
        """Replace the state; what is over by now is dropped on the way."""
        now, key = self._clock(), working_key(owner)
        kept = freeze_mapping("state", state)
        expires = now + timedelta(seconds=checked_ttl(ttl_seconds))
        self._drop_ended(now)
        self._states[key] = (expires, kept)
        heappush(self._ends, (expires, next(self._puts), key))
        if len(self._ends) > 2 * len(self._states) + _FEW:
            self._forget_replaced()

    async def delete(self, owner: MemoryOwner) -> None:
        """Forget the state."""
        self._states.pop(working_key(owner), None)

    def _drop_ended(self, now: datetime) -> None:
        while self._ends and self._ends[0][0] <= now:
            expires, _, key = heappop(self._ends)
            if key in self._states and self._states[key][0] == expires:
                del self._states[key]

    def _forget_replaced(self) -> None:
        """Ends of states that were replaced or deleted; often enough that few are kept."""
        self._ends = [
            (expires, next(self._puts), key) for key, (expires, _) in self._states.items()
        ]
        heapify(self._ends)


def working_key(owner: MemoryOwner) -> WorkingKey:
    """(tenant, project or None, user, session, run); MemoryScopeError for an incomplete owner."""
    user = owner_user(owner)
    complete = owner.principal_id and owner.session_id and owner.run_id and user
    if not complete or user is None or owner.session_id is None or owner.run_id is None:
        raise MemoryScopeError(
            "working memory needs an owner with principal_id, session_id and run_id"
        )
    return (owner.tenant_id, owner.project_id, user, owner.session_id, owner.run_id)


def checked_ttl(seconds: object) -> int:
    """`seconds` as a time to live: a whole number, 1 to 31,536,000."""
    return checks.whole("ttl_seconds", seconds, low=1, high=MAX_TTL_SECONDS)
