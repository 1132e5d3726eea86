"""A store whose working memory is kept by another server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from muniment.domain.conversation import ConversationIdentity
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.ports import WorkingMemoryStore
from muniment.stores.erasure import ErasureResult


class ErasableWorkingMemory(WorkingMemoryStore, Protocol):
    """Working memory that can be erased by realm."""

    async def erase(self, realm: Scope | MemoryOwner, /, *, preview: bool = False) -> int: ...

    async def aclose(self) -> None: ...


class WorkingApart:
    """`store` in all but its working memory; what ends there ends in `working` too."""

    def __init__(self, store: Any, working: ErasableWorkingMemory) -> None:
        self._store = store
        self.working = working
        self.conversations = _Conversations(store.conversations, working)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def erase(
        self, place: Scope | MemoryOwner, *, cascade: bool = True, preview: bool = False
    ) -> ErasureResult:
        """Erase in both; the states of the other server are gone before the rest is."""
        gone = await self.working.erase(place, preview=preview)
        result: ErasureResult = await self._store.erase(place, cascade=cascade, preview=preview)
        return replace(result, working_states=result.working_states + gone)

    async def aclose(self) -> None:
        """Close both."""
        try:
            await self.working.aclose()
        finally:
            await self._store.aclose()


class _Conversations:
    """The conversation face; a session's states end with it."""

    def __init__(self, conversations: Any, working: ErasableWorkingMemory) -> None:
        self._conversations = conversations
        self._working = working

    def __getattr__(self, name: str) -> Any:
        return getattr(self._conversations, name)

    async def delete(self, identity: ConversationIdentity) -> bool:
        """Delete the conversation, and the states of its runs.

        The states go first: a deletion that fails half-way is then to be repeated, and finds the
        conversation.
        """
        owner = MemoryOwner(
            identity.tenant_id, user_id=identity.user_id, session_id=identity.session_id
        )
        await self._working.erase(owner)
        deleted: bool = await self._conversations.delete(identity)
        return deleted
