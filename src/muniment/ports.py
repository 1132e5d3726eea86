"""The protocols that adapters implement. Every adapter is replaceable by another.

Reads by visibility take the caller and answer only what the caller may see; "not there" and
"not yours" are one answer. All calls are async and may raise MemoryStoreError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
    ConversationTurn,
)
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryMatch, MemoryQuery, ResolvedEntity
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust

if TYPE_CHECKING:
    from pydantic import BaseModel

    Reply = TypeVar("Reply", bound=BaseModel)
else:
    Reply = TypeVar("Reply")


class MemoryRepository(Protocol):
    """Long-term memories by visibility. An id is unique within its audience."""

    async def save(self, memory: Memory) -> Memory:
        """Store or update one's own row; answers it as stored (user_id filled in)."""
        ...

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None: ...

    async def search(self, query: MemoryQuery) -> Sequence[Memory]: ...

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool: ...


class MemoryIndex(Protocol):
    """Finding memories by text or embedding (cosine similarity)."""

    async def index_memory(
        self, memory: Memory, embedding: Sequence[float] | None = None
    ) -> None: ...

    async def search_memories(
        self, query: MemoryQuery, embedding: Sequence[float] | None = None
    ) -> Sequence[MemoryMatch]: ...

    async def delete_memory(self, owner: MemoryOwner, memory_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that recall may rank: `relevance` in (0, 1], `lanes` the parts of it by name."""

    memory: Memory
    relevance: float
    lanes: Mapping[str, float]


@runtime_checkable
class MemoryCandidates(Protocol):
    """Recall's candidates from all scopes in one round trip."""

    async def candidates(
        self,
        owner: MemoryOwner,
        text: str,
        *,
        embedding: Sequence[float] | None = None,
        scopes: Sequence[MemoryScope],
        memory_types: Sequence[MemoryType],
        messages: str = "off",
        session_id: str | None = None,
        exclude_message_ids: Sequence[str] = (),
        as_of: datetime | None = None,
        min_trust: Trust | None = None,
        limit: int = 100,
    ) -> tuple[Candidate, ...]:
        """`messages` is "off", "session" (of `session_id`) or "user"; best first."""
        ...


@runtime_checkable
class ReachableCandidates(Protocol):
    """MemoryCandidates whose `candidates` take a `reach: Reach | None` too.

    What is out of reach may be left out of the answer, and need not be read."""

    takes_reach: bool


@runtime_checkable
class MemoryPages(Protocol):
    """Listing memories page by page."""

    async def page(
        self, query: MemoryQuery, *, after: tuple[datetime, str] | None = None
    ) -> Sequence[Memory]:
        """The newest `query.limit` by creation, then id, that follow the place `after` (a row's
        created_at and id, which need not be there any more); the query's text is not used."""
        ...


@dataclass(frozen=True, slots=True)
class StoredFact:
    """`created` is False where the same fact was live already; `superseded` is the closed id."""

    memory: Memory
    created: bool
    superseded: str | None = None


@runtime_checkable
class FactStore(Protocol):
    """Facts that exist once: the uniqueness is the store's rule, not a check before it."""

    async def store_fact(
        self,
        memory: Memory,
        *,
        supersedes: str | None = None,
        embedding: Sequence[float] | None = None,
    ) -> StoredFact:
        """In one transaction: answer the live fact of the same audience and content hash, or
        insert `memory` and, where `supersedes` names a live, unsuperseded row of the same
        audience, close that one at the new one's valid_from and link it."""
        ...


@runtime_checkable
class ServedSearches(Protocol):
    """Counts what searches give out, for usage; nothing is written while one runs."""

    def note_served(self, tenant_id: str, memories: Sequence[Memory]) -> None: ...


class MemoryEmbedder(Protocol):
    """Text to a vector. `embed_batch` (same order, one vector a text) is optional."""

    async def __call__(self, text: str) -> Sequence[float]: ...


class MemoryEntityResolver(Protocol):
    """Mentions to knowledge-graph nodes of the tenant."""

    async def resolve_entities(
        self, mentions: Sequence[str], *, tenant_id: str
    ) -> Sequence[ResolvedEntity]: ...


class MemoryModel(Protocol):
    """A language model. `generate_structured` may raise StructuredOutputUnsupported."""

    async def generate_text(self, *, system: str, user: str) -> str: ...

    async def generate_structured(
        self, *, schema: type[Reply], system: str, user: str
    ) -> Reply: ...


class ConversationMemory(Protocol):
    """Turns of one conversation."""

    async def recent(
        self, identity: ConversationIdentity, *, limit: int = 2
    ) -> Sequence[ConversationTurn]: ...

    async def append(self, identity: ConversationIdentity, turn: ConversationTurn) -> None: ...

    async def clear(self, identity: ConversationIdentity) -> None: ...


class ConversationMessageStore(Protocol):
    """Messages in order of arrival; the same id and content again is ignored, other content
    under a used id is an InvalidEntryError."""

    async def append_messages(
        self,
        identity: ConversationIdentity,
        messages: Sequence[ConversationMessage],
    ) -> None: ...

    async def recent_messages(
        self, identity: ConversationIdentity, *, limit: int
    ) -> Sequence[ConversationMessage]:
        """The newest `limit`, oldest first."""
        ...

    async def recent_complete_messages(
        self, identity: ConversationIdentity, *, limit: int = 3
    ) -> Sequence[ConversationMessage]:
        """The messages of the newest `limit` completed exchanges, oldest first."""
        ...

    async def messages_after(
        self, identity: ConversationIdentity, *, after_message_id: str | None, limit: int
    ) -> Sequence[ConversationMessage]:
        """Oldest first; ValueError for a cursor that is not this conversation's."""
        ...

    async def clear_messages(self, identity: ConversationIdentity) -> None: ...


@runtime_checkable
class TurnOpenings(Protocol):
    """A store that reads what a turn opens with in one go, where its faces would take two."""

    async def opening(
        self, identity: ConversationIdentity, query: MemoryQuery, *, limit: int
    ) -> tuple[Sequence[ConversationMessage], Sequence[Memory]]:
        """What `recent_messages` and `search` answer, of one instant; ValueError for a query
        with a text."""
        ...


class ConversationSessions(Protocol):
    """The existence of conversations."""

    async def create(
        self, identity: ConversationIdentity, *, kind: str = "chat", title: str | None = None
    ) -> None: ...

    async def exists(self, identity: ConversationIdentity, *, kind: str | None = None) -> bool: ...

    async def delete(self, identity: ConversationIdentity) -> bool: ...


class ConversationDirectory(Protocol):
    """Listing and naming a user's conversations."""

    async def list_conversations(
        self,
        *,
        tenant_id: str,
        user_id: str,
        kind: str | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> ConversationPage: ...

    async def rename_conversation(
        self, identity: ConversationIdentity, *, title: str | None
    ) -> bool: ...

    async def set_generated_title(self, identity: ConversationIdentity, *, title: str) -> bool:
        """True where it was set: never over a manual rename, a cleared title included."""
        ...

    async def get_title(self, identity: ConversationIdentity) -> str | None: ...


class WorkingMemoryStore(Protocol):
    """One run's scratch state, kept until its time to live (seconds) is over."""

    async def get(self, owner: MemoryOwner) -> Mapping[str, Any] | None: ...

    async def put(
        self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int
    ) -> None: ...

    async def delete(self, owner: MemoryOwner) -> None: ...


class DocumentRetriever(Protocol):
    """Passages for a question, for answers with citations."""

    async def retrieve(self, query: str, *, tenant_id: str) -> Sequence[Mapping[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """What is kept of a request that came with an idempotency key: no text, only ids.

    `fingerprint` identifies endpoint, session and body; `answer_id` is the stored answer's
    message, and `envelope` the JSON around it, once there is one.
    """

    fingerprint: str
    session_id: str
    question_id: str
    answer_id: str | None = None
    envelope: str | None = None


class LeasedAppends(Protocol):
    """Appending that stops with the session's lease, so that nothing brings back a session that
    was deleted meanwhile."""

    async def append_messages(
        self,
        identity: ConversationIdentity,
        messages: Sequence[ConversationMessage],
        *,
        lease: str | None = None,
    ) -> None:
        """Append; with `lease` NotFoundError where that holder has the session no more."""
        ...


@dataclass(frozen=True, slots=True)
class Begun:
    """How an exchange began: its session is taken where `wait` is 0, else it is another's for so
    many seconds, and nothing was done. `pairs` are the newest completed exchanges' messages."""

    wait: float
    pairs: tuple[ConversationMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """What is kept at the end of an exchange: the `answer`, and with it the first `title` of a
    session without one, and the `envelope` of the request under `key`. None is left out."""

    answer: ConversationMessage | None = None
    title: str | None = None
    key: str | None = None
    envelope: str | None = None


class Exchanges(Protocol):
    """A completion's two writes, each a single transaction where the store can."""

    async def begin(
        self,
        identity: ConversationIdentity,
        question: ConversationMessage | None,
        *,
        holder: str,
        ttl_seconds: float,
        new_kind: str | None,
        pairs: int,
    ) -> Begun:
        """Take the session's lease, read the newest `pairs`, store the question where one is
        given. With `new_kind` a session that is not there is made, of that kind; without it that
        is NotFoundError."""
        ...

    async def end(
        self, identity: ConversationIdentity, ending: Ending, *, holder: str
    ) -> str | None:
        """Keep what is given and free the session; its title. NotFoundError, with nothing kept,
        for an answer whose lease is over."""
        ...


class ServiceRecords(Protocol):
    """What replicas of a service share beside the memory: leases and keyed requests.

    A lease and a session's keyed requests are gone with its conversation.
    """

    async def acquire(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> float:
        """0 where `holder` has the session's lease now; else seconds until it may be free."""
        ...

    async def renew(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> bool:
        """Keep the lease for longer; False where it is not `holder`'s any more."""
        ...

    async def release(self, identity: ConversationIdentity, *, holder: str) -> None: ...

    async def begin(
        self, tenant_id: str, user_id: str, key: str, request: KeyedRequest, *, ttl_seconds: int
    ) -> KeyedRequest:
        """Keep `request` under the user's key; the one that is kept already, where there is."""
        ...

    async def finish(
        self, tenant_id: str, user_id: str, key: str, *, answer_id: str, envelope: str
    ) -> None:
        """Note the answer of a kept request."""
        ...

    async def sizes(self) -> Mapping[str, int]:
        """How much the store holds, by kind, quickly; MemoryStoreError where it cannot answer."""
        ...
