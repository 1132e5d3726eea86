"""Long-term memory: memories in a repository, under the rules of who may write and ask."""

from __future__ import annotations

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import visible_to
from muniment.errors import MemoryScopeError
from muniment.ports import MemoryRepository

_IDENTITY = ("tenant_id", "project_id", "principal_id", "session_id", "run_id")


class LongTermMemory:
    """Memories by caller. `remember` is `save`, `forget` is `delete`.

    The caller is built from the authenticated request, never from fields that a user or a model
    supplies.
    """

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    async def save(self, caller: MemoryOwner, memory: Memory) -> Memory:
        """Store a memory that the caller itself could see.

        MemoryScopeError for GLOBAL, for a scope that the caller could not see it at, and for an
        owner field that claims an identity which the caller does not hold.
        """
        require_writable(caller, memory)
        return await self._repository.save(memory)

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        """The memory, None where it is not there or not visible: one answer."""
        return await self._repository.get(caller, memory_id)

    async def search(self, caller: MemoryOwner, query: MemoryQuery) -> tuple[Memory, ...]:
        """What the query finds; MemoryScopeError where its owner is not the caller."""
        if query.owner != caller:
            raise MemoryScopeError("a query must be made by its owner")
        return tuple(await self._repository.search(query))

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        """True where a visible memory was deleted."""
        return await self._repository.delete(caller, memory_id)

    remember = save
    forget = delete


def require_writable(caller: MemoryOwner, memory: Memory) -> None:
    """MemoryScopeError unless `caller` may store `memory`."""
    if memory.scope is MemoryScope.GLOBAL:
        raise MemoryScopeError("GLOBAL memories are written by trusted code only")
    owner = memory.owner
    borrowed = [
        name
        for name in _IDENTITY
        if getattr(owner, name) is not None and getattr(owner, name) != getattr(caller, name)
    ]
    if owner.user_id is not None and owner.user_id != owner_user(caller):
        borrowed.append("user_id")
    if borrowed:
        raise MemoryScopeError(f"{', '.join(borrowed)}: not the caller's own")
    if not visible_to(memory.scope, owner, caller):
        raise MemoryScopeError(f"the caller could not see a memory at scope {memory.scope.value}")
