"""One door: from a URL and the settings to a running memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from os import PathLike
from typing import Any, Protocol, TypeAlias, cast

from muniment.agent_tools import AgentMemoryTools
from muniment.blocking import BackgroundLoop, Blocking
from muniment.context.builder import MemoryContextBuilder
from muniment.context.policy import MemoryPolicy
from muniment.context.recall import MemoryRecall
from muniment.domain import checks
from muniment.domain.clock import Clock, clock_of
from muniment.domain.content import content_hash
from muniment.domain.conversation import ConversationMessage
from muniment.domain.identifiers import new_memory_id
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, with_user
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError, NotFoundError
from muniment.extraction.extractor import MemoryExtractor
from muniment.governance.audit import AuditLog, VerifyResult
from muniment.governance.usage import Usage
from muniment.manager import MemoryManager
from muniment.models import as_memory_model
from muniment.ports import (
    ConversationDirectory,
    ConversationMessageStore,
    ConversationSessions,
    Exchanges,
    FactStore,
    LeasedAppends,
    MemoryEmbedder,
    MemoryIndex,
    MemoryModel,
    MemoryPages,
    MemoryRepository,
    ServiceRecords,
    TurnOpenings,
    WorkingMemoryStore,
)
from muniment.providers import embedder_of, served_model
from muniment.settings import Settings, load_settings
from muniment.stores.entry_face import Entries
from muniment.stores.erasure import ErasureResult
from muniment.stores.urls import store_of
from muniment.tiers.long_term import LongTermMemory, require_writable
from muniment.tiers.short_term import MessageTurns, ShortTermMemory
from muniment.tiers.working import WorkingMemory

Audit: TypeAlias = AuditLog | str | PathLike[str]

_NOT_REMEMBERED = (MemoryType.CONVERSATION, MemoryType.WORKING, MemoryType.SUMMARY)


class Memories(MemoryRepository, MemoryIndex, MemoryPages, FactStore, Protocol):
    """A store's long-term face."""


class Conversations(
    LeasedAppends, ConversationMessageStore, ConversationSessions, ConversationDirectory, Protocol
):
    """A store's conversation face."""


class AsyncStore(Protocol):
    """What `open_memory` needs of a store: its faces, and its verbs by realm."""

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

    async def history(self, owner: MemoryOwner, memory_id: str, /) -> tuple[Memory, ...]: ...

    @property
    def entries(self) -> Entries: ...

    async def erase(
        self, realm: Scope | MemoryOwner, /, *, cascade: bool = True, preview: bool = False
    ) -> ErasureResult: ...

    async def sweep_expired(self, realm: Scope | MemoryOwner, /) -> int: ...

    async def compact(self) -> None: ...

    async def usage(self, realm: Scope | MemoryOwner, /, period: str | None = None) -> Usage: ...

    def note_served(self, tenant: str, entries: int, tokens: int, /) -> None: ...

    def count_tokens(self, text: str, /) -> int: ...

    async def count(self, realm: Scope | MemoryOwner, /) -> int: ...

    async def reindex(
        self,
        realm: Scope | MemoryOwner | None = None,
        /,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> int: ...

    async def verify_audit(self, *, receipt: str | None = None) -> VerifyResult | None: ...

    async def describe(self) -> Mapping[str, str]: ...

    async def open(self, *, reindexing: bool = False) -> object: ...

    async def aclose(self) -> None: ...


class OpenMemory:
    """A running memory.

    `conversations` holds messages, sessions and their directory; `manager` is the facade over
    the tiers; `store` the async store; `model` the language model, None without. `context` is
    MemoryContextBuilder.build, `recall` is MemoryRecall.recall; `history` and `erase` are the
    store's own. Owners are built from the authenticated request, never from fields that a user
    or a model supplies.
    """

    def __init__(
        self,
        store: AsyncStore,
        *,
        policy: MemoryPolicy,
        model: MemoryModel | None = None,
        embedder: MemoryEmbedder | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.store = store
        self.policy = policy
        self.model = model
        self.conversations = store.conversations
        self._memories = store.memories
        self._clock = clock_of(clock)
        self.manager = MemoryManager(
            ShortTermMemory(MessageTurns(store.conversations, clock=self._clock)),
            WorkingMemory(store.working),
            LongTermMemory(store.memories),
        )
        parts: dict[str, Any] = {
            "policy": policy,
            "memories": store.memories,
            "index": store.memories,
            "embedder": embedder,
            "clock": self._clock,
        }
        self.recall = MemoryRecall(**parts).recall
        self.context = MemoryContextBuilder(
            **parts,
            messages=store.conversations,
            model=model,
            openings=store if isinstance(store, TurnOpenings) else None,
        ).build
        self._extractor = MemoryExtractor(**parts, model=model)
        self._embedder = embedder
        self.history = store.history
        self.erase = store.erase

    def agent_tools(self, owner: MemoryOwner) -> AgentMemoryTools:
        """`search_memory` and `manage_memory` for an agent, bound to `owner`."""
        memories = self._memories
        return AgentMemoryTools(
            owner, memories, self.policy, memories, self._embedder, clock=self._clock
        )

    async def extract(
        self, owner: MemoryOwner, messages: Sequence[ConversationMessage]
    ) -> tuple[Memory, ...]:
        """The memories stored from a finished turn's messages; none without a model."""
        return await self._extractor.extract(owner, messages=messages)

    async def remember(
        self,
        owner: MemoryOwner,
        content: str,
        *,
        memory_type: MemoryType | str = MemoryType.FACT,
        scope: MemoryScope | str = MemoryScope.USER,
        trust: Trust | str = Trust.UNTRUSTED,
        importance: float = 0.5,
        valid_from: datetime | None = None,
        replaces: str | None = None,
        source: str = "api",
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store a fact that holds from `valid_from` (now) on; the live one where it is known.

        `replaces` is the id of a memory of the same scope, whose validity ends where this one's
        begins; news older than it is placed before it, and the newer stays current. The policy's
        retention sets the expiry. NotFoundError for a `replaces` that is not there,
        MemoryScopeError for a scope that the owner cannot write, InvalidEntryError for a type
        that is not remembered this way, ValueError for another bad value.
        """
        now = self._clock()
        memory = Memory(
            memory_id=new_memory_id(),
            scope=MemoryScope(scope),
            memory_type=_rememberable(MemoryType(memory_type)),
            owner=with_user(owner),
            content=content,
            metadata=metadata or {},
            importance=importance,
            created_at=now,
            valid_from=checks.optional_instant("valid_from", valid_from) or now,
            expires_at=self.policy.retention.expires_at(MemoryScope(scope), now),
            content_hash=content_hash(content, MemoryScope(scope)),
            source_session_id=owner.session_id,
            trust=Trust(trust),
            source=source,
        )
        require_writable(owner, memory)
        closes = None if replaces is None else await self._current(owner, replaces, memory.scope)
        return (await self._memories.store_fact(memory, supersedes=closes)).memory

    async def _current(self, owner: MemoryOwner, memory_id: str, scope: MemoryScope) -> str:
        """The newest of the facts that followed on `memory_id`."""
        chain = await self.store.history(owner, memory_id)
        if not chain:
            raise NotFoundError
        if chain[-1].scope is not scope:
            raise InvalidEntryError("replaces: must name a memory of the same scope")
        return chain[-1].memory_id


@asynccontextmanager
async def open_store(
    url: str | None = None,
    *,
    embedder: str | MemoryEmbedder | None = "auto",
    clock: Clock | None = None,
    audit: Audit | None = None,
    ranking: str | None = None,
    reindexing: bool = False,
    settings: Settings | None = None,
) -> AsyncIterator[AsyncStore]:
    """The store of `open_memory` alone, for its verbs by realm; closed at the end of the block.

    `reindexing` lets a file in whose vectors are of another model: call its `reindex` next.
    """
    settings = settings or load_settings()
    options: dict[str, Any] = {
        "embedder": embedder_of(settings.embedder if embedder == "auto" else embedder),
        "clock": clock,
        "audit": settings.audit_path if audit is None else audit,
        "quota_entries": settings.quota_entries,
        "quota_tokens": settings.quota_tokens,
        "ranking": ranking or settings.ranking,
    }
    target = url or settings.database_url
    store: AsyncStore = store_of(target, options, settings.encryption_key)
    if settings.valkey_url is not None:
        store = _working_apart(store, settings.valkey_url, clock)
    try:
        await store.open(reindexing=reindexing)
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def open_memory(
    url: str | None = None,
    *,
    policy: MemoryPolicy | None = None,
    model: object | None = None,
    embedder: str | MemoryEmbedder | None = "auto",
    clock: Clock | None = None,
    audit: Audit | None = None,
    ranking: str | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[OpenMemory]:
    """A running memory for `url` (`sqlite:///file`, `postgresql://host/database`,
    `memory://`); closed at the end of the block.

    What is not given comes from `settings`, by default the environment's. `model` is a
    MemoryModel or a LangChain chat model. `embedder`: "auto" (the local one where its extra is
    installed, else words alone), "local", None, or a MemoryEmbedder. `audit`: an AuditLog or its
    path (in PostgreSQL "table"), in which every write of memories and conversations is recorded.
    `ranking`: "learned", "evidence" (six round weights) or "hybrid" (words and meaning alone).
    MemoryConfigurationError for what does not fit.
    """
    settings = settings or load_settings()
    async with AsyncExitStack() as stack:
        chosen = embedder_of(settings.embedder if embedder == "auto" else embedder)
        opening = open_store(
            url, embedder=chosen, clock=clock, audit=audit, ranking=ranking, settings=settings
        )
        store = await stack.enter_async_context(opening)
        if model is None and settings.model is not None:
            model = await stack.enter_async_context(served_model(settings.model))
        yield OpenMemory(
            store,
            policy=policy or settings.policy,
            model=None if model is None else as_memory_model(model),
            embedder=chosen,
            clock=clock,
        )


@contextmanager
def open_memory_blocking(
    url: str | None = None,
    *,
    policy: MemoryPolicy | None = None,
    model: object | None = None,
    embedder: str | MemoryEmbedder | None = "auto",
    clock: Clock | None = None,
    audit: Audit | None = None,
    ranking: str | None = None,
) -> Iterator[Any]:
    """`open_memory` for code without an event loop: the same object, its async methods blocking.

    They run in one background loop; calls from several threads are welcome.
    """
    loop = BackgroundLoop()
    opened = open_memory(
        url,
        policy=policy,
        model=model,
        embedder=embedder,
        clock=clock,
        audit=audit,
        ranking=ranking,
    )
    try:
        memory = loop.run(opened.__aenter__())
        try:
            yield Blocking(memory, loop)
        finally:
            loop.run(opened.__aexit__(None, None, None))
    finally:
        loop.close()


def _rememberable(kind: MemoryType) -> MemoryType:
    if kind in _NOT_REMEMBERED:
        raise InvalidEntryError(f"memory_type: {kind.value} is not stored by remember")
    return kind


def _working_apart(store: AsyncStore, url: str, clock: Clock | None) -> AsyncStore:
    from muniment.stores.valkey import ValkeyWorkingMemoryStore
    from muniment.stores.working_apart import WorkingApart

    return cast(AsyncStore, WorkingApart(store, ValkeyWorkingMemoryStore(url, clock=clock)))
