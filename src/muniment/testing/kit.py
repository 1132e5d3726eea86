"""One store under test, with short names for what specs need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Protocol

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.query import MemoryQuery
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.governance.usage import Usage
from muniment.ports import (
    Candidate,
    ConversationDirectory,
    ConversationMessageStore,
    ConversationSessions,
    Exchanges,
    FactStore,
    LeasedAppends,
    MemoryCandidates,
    MemoryEmbedder,
    MemoryIndex,
    MemoryPages,
    MemoryRepository,
    ServiceRecords,
    WorkingMemoryStore,
)
from muniment.stores.entry_face import Entries
from muniment.stores.erasure import ErasureResult
from muniment.testing.doubles import ManualClock


class Memories(MemoryRepository, MemoryIndex, MemoryPages, MemoryCandidates, FactStore, Protocol):
    """The memory face of a store."""


class Conversations(
    LeasedAppends, ConversationMessageStore, ConversationSessions, ConversationDirectory, Protocol
):
    """The conversation face of a store."""


class AsyncStore(Protocol):
    """What the kit tests: the faces, and the verbs by realm."""

    @property
    def memories(self) -> Memories: ...
    @property
    def conversations(self) -> Conversations: ...
    @property
    def working(self) -> WorkingMemoryStore: ...
    @property
    def service(self) -> ServiceRecords: ...
    @property
    def exchanges(self) -> Exchanges: ...
    @property
    def entries(self) -> Entries: ...
    async def history(self, whose: MemoryOwner | Scope, memory_id: str, /) -> Sequence[Memory]: ...
    async def count(self, realm: Scope | MemoryOwner, /) -> int: ...
    async def erase(
        self, realm: Scope | MemoryOwner, /, *, cascade: bool = True, preview: bool = False
    ) -> ErasureResult: ...
    async def sweep_expired(self, realm: Scope | MemoryOwner, /) -> int: ...
    async def compact(self) -> None: ...
    async def usage(self, realm: Scope | MemoryOwner, /, period: str | None = None) -> Usage: ...
    def note_served(self, tenant: str, entries: int, tokens: int) -> None: ...
    async def reindex(self) -> int: ...
    async def aclose(self) -> None: ...


StoreMaker = Callable[..., AsyncStore]

EVERY_SCOPE = tuple(MemoryScope)
EVERY_TYPE = tuple(MemoryType)


class Kit:
    """A fresh store and a clock that stands still."""

    def __init__(self, make: StoreMaker) -> None:
        self.clock = ManualClock()
        self._make = make
        self.store = make(self.clock, None)

    @classmethod
    @asynccontextmanager
    async def of(cls, make: StoreMaker) -> AsyncIterator[Kit]:
        """A kit whose store is closed at the end."""
        kit = cls(make)
        try:
            yield kit
        finally:
            await kit.store.aclose()

    async def reopen(self, embedder: MemoryEmbedder | None = None, **options: Any) -> None:
        """Close the store and make it again: after a restart, or with an embedder or options."""
        await self.store.aclose()
        self.store = self._make(self.clock, embedder, **options)

    @property
    def memories(self) -> Memories:
        """The memory face."""
        return self.store.memories

    @property
    def conversations(self) -> Conversations:
        """The conversation face."""
        return self.store.conversations

    @property
    def entries(self) -> Entries:
        """The realm face."""
        return self.store.entries

    async def hits(self, realm: Scope, query: str, **fields: Any) -> list[str]:
        """The texts that a search by realm answers, in order."""
        return [hit.entry.text for hit in await self.entries.search(realm, query, **fields)]

    def memory(
        self, owner: MemoryOwner, content: str, memory_id: str | None = None, **fields: Any
    ) -> Memory:
        """A USER fact of now, unless said otherwise; its id is its content by default."""
        fields.setdefault("created_at", self.clock())
        scope = fields.pop("scope", MemoryScope.USER)
        kind = fields.pop("memory_type", MemoryType.FACT)
        return Memory(memory_id or f"id of {content}"[:200], scope, kind, owner, content, **fields)

    async def save(
        self, owner: MemoryOwner, content: str, memory_id: str | None = None, **fields: Any
    ) -> Memory:
        """Save what `memory` makes."""
        return await self.memories.save(self.memory(owner, content, memory_id, **fields))

    async def found(self, owner: MemoryOwner, text: str | None = None, **fields: Any) -> list[str]:
        """The contents that a search answers, in order."""
        rows = await self.memories.search(MemoryQuery(owner, text=text, **fields))
        return [row.content for row in rows]

    async def recalled(self, owner: MemoryOwner, text: str, **fields: Any) -> tuple[Candidate, ...]:
        """Recall's candidates, messages of all the user's sessions among them."""
        fields = {"scopes": EVERY_SCOPE, "memory_types": EVERY_TYPE, "messages": "user", **fields}
        return await self.memories.candidates(owner, text, **fields)

    async def recalled_contents(self, owner: MemoryOwner, text: str, **fields: Any) -> list[str]:
        """The contents of `recalled`, in order."""
        return [hit.memory.content for hit in await self.recalled(owner, text, **fields)]

    async def say(
        self, owner: MemoryOwner, *contents: str, role: str = "user", at: datetime | None = None
    ) -> None:
        """Append messages to the owner's conversation; a message's id is its content."""
        await self.conversations.append_messages(
            talk_of(owner), [self.message(content, role=role, at=at) for content in contents]
        )

    def message(
        self, content: str, message_id: str | None = None, *, role: str = "user",
        at: datetime | None = None, **fields: Any,
    ) -> ConversationMessage:  # fmt: skip
        """A message of now; its id is its content by default."""
        kind: Any = role
        return ConversationMessage(
            message_id or f"id of {content}"[:200], kind, content, at or self.clock(), **fields
        )

    async def said(self, owner: MemoryOwner, limit: int = 100) -> list[str]:
        """The contents of the owner's conversation, oldest first."""
        rows = await self.conversations.recent_messages(talk_of(owner), limit=limit)
        return [row.content for row in rows]


def person(
    tenant: str = "acme", user: str = "ana", session: str = "s1", **more: Any
) -> MemoryOwner:
    """An owner with principal and session, as a request has them."""
    return MemoryOwner(tenant, user_id=user, principal_id=user, session_id=session, **more)


def talk_of(owner: MemoryOwner) -> ConversationIdentity:
    """The owner's conversation."""
    user = owner_user(owner) or ""
    return ConversationIdentity(owner.tenant_id, owner.principal_id, owner.session_id or "", user)
