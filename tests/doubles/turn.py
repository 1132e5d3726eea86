"""Small doubles of a turn's ports, each able to fail or to hang."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryMatch, MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import visible_to
from muniment.errors import MemoryStoreError, StructuredOutputUnsupported
from muniment.ports import Candidate
from muniment.replies import CondenseRequest

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
OWNER = MemoryOwner("acme", "apollo", "ana", "token-1", "monday")


def clock() -> datetime:
    return NOW


async def hang() -> Any:
    await asyncio.Event().wait()


class Fault:
    """What a double does instead of its work: nothing, raise, or hang."""

    def __init__(self, how: str = "") -> None:
        self.how = how

    async def strike(self) -> None:
        if self.how == "hang":
            await hang()
        if self.how:
            raise MemoryStoreError("SECRET text of the failure")


def message(
    place: int,
    role: str = "user",
    content: str = "",
    *,
    calls: str | None = None,
    tokens: int | None = None,
) -> ConversationMessage:
    return ConversationMessage(
        f"m{place}",
        role,  # type: ignore[arg-type]
        content or ("" if calls else f"words of message {place}"),
        NOW - timedelta(hours=1) + timedelta(seconds=place),
        token_count=tokens,
        tool_calls_json=calls,
        tool_call_id=f"call{place}" if role == "tool" else None,
    )


def exchanges(
    count: int, *, tokens: int | None = None, first: int = 1
) -> list[ConversationMessage]:
    roles = ("user", "assistant")
    return [message(first + n, roles[n % 2], tokens=tokens) for n in range(2 * count)]


class Messages:
    """One conversation's messages."""

    def __init__(self, held: Sequence[ConversationMessage] = (), fault: str = "") -> None:
        self.held = list(held)
        self.fault = Fault(fault)
        self.page_limit = 1000

    async def append_messages(
        self, identity: ConversationIdentity, messages: Sequence[ConversationMessage]
    ) -> None:
        self.held += messages

    async def recent_messages(
        self, identity: ConversationIdentity, *, limit: int
    ) -> Sequence[ConversationMessage]:
        await self.fault.strike()
        return self.held[-limit:]

    async def messages_after(
        self, identity: ConversationIdentity, *, after_message_id: str | None, limit: int
    ) -> Sequence[ConversationMessage]:
        ids = [each.message_id for each in self.held]
        if after_message_id is not None and after_message_id not in ids:
            raise ValueError("after_message_id: not of this conversation")
        start = ids.index(after_message_id) + 1 if after_message_id else 0
        return self.held[start : start + min(limit, self.page_limit)]

    async def recent_complete_messages(
        self, identity: ConversationIdentity, *, limit: int = 3
    ) -> Sequence[ConversationMessage]:
        return self.held[-2 * limit :]

    async def clear_messages(self, identity: ConversationIdentity) -> None:
        self.held.clear()


class Repository:
    """A foreign repository: substring search, nothing else."""

    def __init__(self, *held: Memory, fault: str = "", fails: Sequence[str] = ()) -> None:
        self.held = {each.memory_id: each for each in held}
        self.fault = Fault(fault)
        self.fails = fails
        self.calls: Counter[str] = Counter()
        self.queries: list[MemoryQuery] = []

    async def _enter(self, call: str) -> None:
        self.calls[call] += 1
        if not self.fails or call in self.fails:
            await self.fault.strike()

    async def save(self, memory: Memory) -> Memory:
        await self._enter("save")
        self.held[memory.memory_id] = memory
        return memory

    async def get(self, caller: MemoryOwner, memory_id: str) -> Memory | None:
        await self._enter("get")
        return self.held.get(memory_id)

    async def search(self, query: MemoryQuery) -> Sequence[Memory]:
        await self._enter("search")
        self.queries.append(query)
        return [each for each in self.held.values() if self._matches(query, each)]

    async def delete(self, caller: MemoryOwner, memory_id: str) -> bool:
        return self.held.pop(memory_id, None) is not None

    @staticmethod
    def _matches(query: MemoryQuery, memory: Memory) -> bool:
        return (
            memory.scope in query.scopes
            and memory.memory_type in query.memory_types
            and visible_to(memory.scope, memory.owner, query.owner)
            and (query.text or "").casefold() in memory.content.casefold()
        )


class OneTrip(Repository):
    """A repository that gives candidates, of a fixed relevance each."""

    def __init__(self, *found: Candidate, fault: str = "") -> None:
        super().__init__(fault=fault)
        self.found = found
        self.asked: list[dict[str, Any]] = []

    async def candidates(
        self, owner: MemoryOwner, text: str, **asked: Any
    ) -> tuple[Candidate, ...]:
        await self._enter("candidates")
        self.asked.append({"text": text, **asked})
        return self.found


class Together:
    """A store that opens a turn in one read, of a double each for messages and memories."""

    def __init__(self, messages: Messages, memories: Repository, fault: str = "") -> None:
        self.messages, self.memories = messages, memories
        self.fault = Fault(fault)
        self.openings = 0

    async def opening(
        self, identity: ConversationIdentity, query: MemoryQuery, *, limit: int
    ) -> tuple[Sequence[ConversationMessage], Sequence[Memory]]:
        self.openings += 1
        await self.fault.strike()
        said = await self.messages.recent_messages(identity, limit=limit)
        return said, await self.memories.search(query)


class Index:
    """A separate index that answers what it was told to."""

    def __init__(self, *matches: MemoryMatch, fault: str = "") -> None:
        self.matches = matches
        self.fault = Fault(fault)
        self.asked: list[tuple[MemoryQuery, object]] = []

    async def index_memory(self, memory: Memory, embedding: object = None) -> None: ...

    async def search_memories(
        self, query: MemoryQuery, embedding: Sequence[float] | None = None
    ) -> Sequence[MemoryMatch]:
        self.asked.append((query, embedding))
        await self.fault.strike()
        return self.matches

    async def delete_memory(self, owner: MemoryOwner, memory_id: str) -> None: ...


class Model:
    """A scripted model; `calls` are (kind, system, user)."""

    def __init__(
        self,
        summary: str | Callable[[str], str] = "They talked.",
        query: str = "",
        types: Sequence[str] = (),
        *,
        structured: bool = True,
        fault: str = "",
    ) -> None:
        self.summary, self.query, self.types = summary, query, list(types)
        self.structured = structured
        self.fault = Fault(fault)
        self.calls: list[tuple[str, str, str]] = []
        self.asked = asyncio.Event()

    def users(self, kind: str) -> list[str]:
        return [user for each, _, user in self.calls if each == kind]

    async def generate_text(self, *, system: str, user: str) -> str:
        kind = "summary" if "summary" in system else "condense"
        self.calls.append((kind, system, user))
        await self.fault.strike()
        if kind == "condense":
            return self.query
        return self.summary if isinstance(self.summary, str) else self.summary(user)

    async def generate_structured(self, *, schema: Any, system: str, user: str) -> Any:
        self.calls.append(("structured", system, user))
        self.asked.set()
        await self.fault.strike()
        if not self.structured:
            raise StructuredOutputUnsupported("not served")
        return CondenseRequest(query=self.query, wanted_types=self.types)


class Embedder:
    def __init__(self, fault: str = "", vector: Sequence[float] = (1.0, 0.0)) -> None:
        self.fault, self.vector = Fault(fault), vector

    async def __call__(self, text: str) -> Sequence[float]:
        await self.fault.strike()
        return self.vector


def fact(memory_id: str, content: str, **changes: Any) -> Memory:
    values: dict[str, Any] = {
        "scope": MemoryScope.USER,
        "memory_type": MemoryType.FACT,
        "owner": OWNER,
        "created_at": NOW - timedelta(days=7),
    }
    return Memory(memory_id=memory_id, content=content, **{**values, **changes})


def found(memory: Memory, relevance: float = 0.5, **lanes: float) -> Candidate:
    return Candidate(memory, relevance, lanes)
