"""Memory tools for an agent: search and manage, bound to one owner for good.

The owner is built from the authenticated request and given at construction, never from fields that
a user or a model supplies: a call that carries any owner field is an error, and a requested scope
only ever narrows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from muniment.context.policy import MemoryPolicy
from muniment.context.recall import MemoryRecall
from muniment.domain.clock import Clock, clock_of
from muniment.domain.content import content_hash, says_something
from muniment.domain.identifiers import new_memory_id
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, scope_query_owner, with_user
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError, MemoryScopeError
from muniment.extraction.dedup import Restatements
from muniment.extraction.secrets import holds_secret
from muniment.extraction.storing import FactWriter
from muniment.ports import MemoryEmbedder, MemoryIndex, MemoryRepository

TOOL_SOURCE = "agent_tool"
MAX_CONTENT_CHARACTERS = 4_000
READABLE = (MemoryScope.TENANT, MemoryScope.PROJECT, MemoryScope.USER, MemoryScope.SESSION)
_OWNER_FIELDS = tuple(MemoryOwner.__dataclass_fields__)
_Arguments = TypeVar("_Arguments", bound=BaseModel)


class ReadableScope(StrEnum):
    """The scopes that an agent may ask about."""

    TENANT = "tenant"
    PROJECT = "project"
    USER = "user"
    SESSION = "session"


class WritableScope(StrEnum):
    """The scopes that an agent may ask to write; the policy may narrow PROJECT to SESSION."""

    PROJECT = "project"
    USER = "user"
    SESSION = "session"


class WritableType(StrEnum):
    """What an agent may store."""

    FACT = "fact"
    PREFERENCE = "preference"
    DECISION = "decision"
    EPISODE = "episode"


class _ToolArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, values: dict[str, Any]) -> dict[str, Any]:
        """An owner field is refused whatever it holds, so only our own fields may be null."""
        known = cls.model_fields
        return {k: value for k, value in values.items() if value is not None or k not in known}

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("must not be true or false")
        return value


class SearchArguments(_ToolArguments):
    """Arguments of `search_memory`."""

    query: str = Field(description="What to look for, in plain words.")
    scope: ReadableScope | None = Field(
        default=None, description="Look only here; everything readable when absent."
    )
    limit: int = Field(default=5, ge=1, le=10, description="How many memories at most.")

    @field_validator("query")
    @classmethod
    def _asks_something(cls, value: str) -> str:
        return _said(value)


class ManageArguments(_ToolArguments):
    """Arguments of `manage_memory`."""

    content: str = Field(
        max_length=MAX_CONTENT_CHARACTERS,
        description="One durable fact in the third person, complete by itself. No secrets.",
    )
    memory_type: WritableType = Field(default=WritableType.FACT, description="What it is.")
    scope: WritableScope = Field(
        default=WritableScope.USER, description="How widely it applies; never wider than allowed."
    )
    importance: float = Field(
        default=0.5, ge=0, le=1, allow_inf_nan=False, description="0 (trivial) to 1 (essential)."
    )

    @field_validator("content")
    @classmethod
    def _says_something(cls, value: str) -> str:
        return _said(value)


class AgentMemoryTools:
    """`search_memory` and `manage_memory` for one owner.

    Bad arguments, an owner field among them, raise InvalidEntryError, whose text is fit to be
    given to the model: it names fields and quotes nothing.
    """

    def __init__(
        self,
        owner: MemoryOwner,
        memories: MemoryRepository,
        policy: MemoryPolicy,
        index: MemoryIndex | None = None,
        embedder: MemoryEmbedder | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._owner = with_user(owner)
        self._policy = policy
        self._clock = clock_of(clock)
        self._memories = memories
        self._index = index
        self._embedder = embedder
        seconds = policy.call_timeout_seconds
        self._writer = FactWriter(memories, index=index, timeout_seconds=seconds)
        self._restatements = Restatements(policy, memories, index=index, embedder=embedder)

    @property
    def definitions(self) -> tuple[dict[str, Any], ...]:
        """Both tools as name, description and JSON schema of the parameters."""
        described = (
            ("search_memory", "Look up what is remembered.", SearchArguments),
            ("manage_memory", "Remember one durable fact.", ManageArguments),
        )
        return tuple(
            {"name": name, "description": text, "parameters": arguments.model_json_schema()}
            for name, text, arguments in described
        )

    async def call(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Run the tool of that name; InvalidEntryError for an unknown one."""
        if name == "search_memory":
            return await self.search(values)
        if name == "manage_memory":
            return await self.manage(values)
        raise InvalidEntryError("no such tool; there are search_memory and manage_memory")

    async def search(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """``{"memories": [{id, content, type, scope, trust, date}, ...]}``, best first.

        A lookup that fails finds nothing. The content is data: it may hold what anybody wrote.
        """
        wanted = _arguments(SearchArguments, values)
        scopes = (MemoryScope(wanted.scope),) if wanted.scope else READABLE
        policy = replace(
            self._policy, recall_scopes=scopes, recall_messages="off", recall_top_k=wanted.limit
        )
        recall = MemoryRecall(
            policy=policy,
            memories=self._memories,
            index=self._index,
            embedder=self._embedder,
            clock=self._clock,
        )
        found = await recall.recall(self._owner, wanted.query, top_k=wanted.limit, max_tokens=None)
        return {"memories": [_shown(memory) for memory in found]}

    async def manage(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """``{"status": "stored" | "exists" | "disabled", "memory_id": ...}``.

        The same fact again, or a restatement of it, is reported and not stored. Raises
        InvalidEntryError for a secret, MemoryScopeError where the owner cannot address the scope,
        and what the store raises.
        """
        wanted = _arguments(ManageArguments, values)
        if not self._policy.enabled:
            return {"status": "disabled", "memory_id": None}
        if holds_secret(wanted.content):
            raise InvalidEntryError("content: credentials are never stored")
        memory = self._memory(wanted)
        embedding = await self._restatements.embedding(memory.content)
        known = await self._restatements.of(memory, embedding, now=memory.created_at)
        if known is not None:
            await self._writer.repair(known)
            return _outcome("exists", known)
        stored = await self._writer.write(memory, embedding=embedding)
        return _outcome("stored" if stored.created else "exists", stored.memory)

    def _memory(self, wanted: ManageArguments) -> Memory:
        scope = self._policy.write_scope(MemoryScope(wanted.scope))
        if scope_query_owner(self._owner, scope) is None:
            raise MemoryScopeError(f"this owner cannot write at the scope {scope.value}")
        now = self._clock()
        content = wanted.content.strip()
        try:
            return Memory(
                memory_id=new_memory_id(),
                scope=scope,
                memory_type=MemoryType(wanted.memory_type),
                owner=self._owner,
                content=content,
                importance=wanted.importance,
                created_at=now,
                expires_at=self._policy.retention.expires_at(scope, now),
                valid_from=now,
                source_session_id=self._owner.session_id,
                content_hash=content_hash(content, scope),
                trust=Trust.MODEL,
                source=TOOL_SOURCE,
            )
        except ValueError as error:
            raise InvalidEntryError(str(error)) from None


def _arguments(kind: type[_Arguments], values: Mapping[str, Any]) -> _Arguments:
    if not isinstance(values, Mapping):
        raise InvalidEntryError("arguments: must be an object")
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        fields = {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}
        known = sorted(fields & {*kind.model_fields, *_OWNER_FIELDS})
        problem = f"bad arguments: {', '.join(known)}" if known else "arguments not accepted here"
        allowed = ", ".join(kind.model_fields)
        raise InvalidEntryError(f"{problem}; there are {allowed}, and no owner fields") from None


def _said(value: str) -> str:
    if not says_something(value):
        raise ValueError("must not be blank")
    return value


def _shown(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.memory_id,
        "content": memory.content,
        "type": memory.memory_type.value,
        "scope": memory.scope.value,
        "trust": memory.trust.value,
        "date": (memory.valid_from or memory.created_at).date().isoformat(),
    }


def _outcome(status: str, memory: Memory) -> dict[str, Any]:
    return {"status": status, "memory_id": memory.memory_id}
