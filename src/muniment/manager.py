"""The one facade over the memory tiers that application code imports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from muniment.domain import checks
from muniment.domain.conversation import ConversationTurn
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.errors import MemoryConfigurationError
from muniment.tiers.long_term import LongTermMemory
from muniment.tiers.short_term import MAX_RECENT_TURNS, ShortTermMemory
from muniment.tiers.working import DEFAULT_TTL_SECONDS, WorkingMemory, checked_ttl

Tier = TypeVar("Tier")


@dataclass(frozen=True, slots=True)
class MemoryManagerConfig:
    """Defaults of the facade: turns a `recent` gives (1..1000), and the life of working state."""

    recent_turn_limit: int = 2
    working_ttl_seconds: int = DEFAULT_TTL_SECONDS

    def __post_init__(self) -> None:
        try:
            checks.whole("recent_turn_limit", self.recent_turn_limit, low=1, high=MAX_RECENT_TURNS)
            checked_ttl(self.working_ttl_seconds)
        except ValueError as error:
            raise MemoryConfigurationError(str(error)) from None


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """All tiers read together; an unconfigured tier is empty."""

    recent_turns: tuple[ConversationTurn, ...] = ()
    working_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    memories: tuple[Memory, ...] = ()


class MemoryManager:
    """Short-term, working and long-term memory; each is optional.

    Using a tier that is not configured raises MemoryConfigurationError. Every owner is built
    from the authenticated request, never from fields that a user or a model supplies.
    """

    def __init__(
        self,
        short_term: ShortTermMemory | None = None,
        working: WorkingMemory | None = None,
        long_term: LongTermMemory | None = None,
        *,
        config: MemoryManagerConfig | None = None,
    ) -> None:
        self._short_term = short_term
        self._working = working
        self._long_term = long_term
        self._config = config or MemoryManagerConfig()

    async def recent(
        self, owner: MemoryOwner, *, limit: int | None = None
    ) -> tuple[ConversationTurn, ...]:
        """The newest turns, oldest first; 1..1000."""
        short_term = _configured("short-term", self._short_term)
        wanted = self._config.recent_turn_limit if limit is None else limit
        return await short_term.recent(owner, limit=wanted)

    async def append(self, owner: MemoryOwner, turn: ConversationTurn) -> None:
        """Add a finished turn to the conversation."""
        await _configured("short-term", self._short_term).append(owner, turn)

    async def clear(self, owner: MemoryOwner) -> None:
        """Forget the conversation."""
        await _configured("short-term", self._short_term).clear(owner)

    async def scratch(self, owner: MemoryOwner) -> dict[str, Any]:
        """A copy of the run's state; empty when nothing is stored."""
        return await _configured("working", self._working).scratch(owner)

    async def update(
        self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int | None = None
    ) -> None:
        """Replace the run's whole state, for 1 second to 365 days."""
        ttl = self._config.working_ttl_seconds if ttl_seconds is None else ttl_seconds
        await _configured("working", self._working).update(owner, state, ttl_seconds=ttl)

    async def clear_working(self, owner: MemoryOwner) -> None:
        """Forget the run's state."""
        await _configured("working", self._working).clear(owner)

    async def save(self, caller: MemoryOwner, memory: Memory) -> Memory:
        """Store a memory; MemoryScopeError where the caller may not write it."""
        return await _configured("long-term", self._long_term).save(caller, memory)

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        """The memory, None where it is not there or not visible."""
        return await _configured("long-term", self._long_term).get(caller, memory_id)

    async def search(self, caller: MemoryOwner, query: MemoryQuery) -> tuple[Memory, ...]:
        """What the query finds; MemoryScopeError where its owner is not the caller."""
        return await _configured("long-term", self._long_term).search(caller, query)

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        """True where a visible memory was deleted."""
        return await _configured("long-term", self._long_term).delete(caller, memory_id)

    async def snapshot(
        self,
        owner: MemoryOwner,
        *,
        query: MemoryQuery | None = None,
        recent_limit: int | None = None,
    ) -> MemorySnapshot:
        """Every configured tier, read together.

        A query without a long-term tier raises MemoryConfigurationError, since "nothing stored"
        and "not configured" are different answers.
        """
        turns, state, memories = await asyncio.gather(
            self.recent(owner, limit=recent_limit) if self._short_term else _empty(()),
            self.scratch(owner) if self._working else _empty({}),
            self.search(owner, query) if query else _empty(()),
        )
        return MemorySnapshot(turns, state, memories)


async def _empty(value: Tier) -> Tier:
    return value


def _configured(name: str, tier: Tier | None) -> Tier:
    if tier is None:
        raise MemoryConfigurationError(f"the {name} tier is not configured")
    return tier
