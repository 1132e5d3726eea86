"""The demonstration's steps, as data: nothing here prints."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from muniment.cli.identity import owner_of
from muniment.context.recall import RecalledMemory
from muniment.demo import Demo, DemoMemory, DemoMessage, DemoQuestion
from muniment.domain.conversation import (
    ConversationMessage,
    ConversationRole,
    conversation_identity,
)
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

TOP = 6
Opened = Callable[[], "AbstractAsyncContextManager[OpenMemory]"]


class DemoClock:
    """The time of the story; it only goes forward."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def __call__(self) -> datetime:
        return self._now

    def advance(self, instant: datetime) -> None:
        """Go to `instant`, unless it is past."""
        self._now = max(self._now, instant)


@dataclass(frozen=True, slots=True)
class Stored:
    """What was stored, and how long it took."""

    conversations: int
    messages: int
    memories: int
    owners: tuple[str, ...]
    first: datetime
    last: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """One question: what was recalled, best first.

    `rank` is that of the first message that answers it (from 1; None where none was recalled,
    or none should be), `foreign` how many of the recalled are somebody else's.
    """

    asked: DemoQuestion
    recalled: tuple[RecalledMemory, ...]
    rank: int | None
    foreign: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Changed:
    """A fact that changed, oldest first."""

    who: str
    chain: tuple[Memory, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """Somebody asks for what is Ana's: how much came back, and how much of it was hers."""

    who: str
    recalled: int
    hers: int
    found_by_id: bool


@dataclass(frozen=True, slots=True)
class Isolation:
    """The same question from others."""

    question: str
    attempts: tuple[Attempt, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Restarted:
    """The file closed and opened again: the same recall, and the time of each part."""

    same: bool
    open_seconds: float
    recall_seconds: float
    again_seconds: float


@dataclass(frozen=True, slots=True)
class Erasure:
    """One user erased: the receipt, and what is recalled of them and of another after it."""

    who: str
    memories: int
    conversations: int
    messages: int
    left: int
    others: int
    seconds: float


Section = Stored | Answer | Changed | Isolation | Restarted | Erasure


def name_of(tenant: str, user: str) -> str:
    """A user and their tenant, for people."""
    return f"{user}@{tenant}"


class Play:
    """The steps over one store. `opened` opens it, and must open the same one each time."""

    def __init__(self, demo: Demo, opened: Opened, clock: DemoClock) -> None:
        self._demo = demo
        self._opened = opened
        self._clock = clock
        self._stored: list[str] = []
        self._whose = {each.message_id: (each.tenant, each.user) for each in demo.messages}

    async def run(self) -> AsyncIterator[Section]:
        """Every section as it is done."""
        async with self._opened() as memory:
            yield await self._store(memory)
            for question in self._demo.questions:
                yield await self._ask(memory, question)
            for index in self._changed():
                yield await self._history(memory, index)
            yield await self._isolation(memory)
            before = await self._recall(memory, self._demo.questions[0])
        yield await self._restart(before)
        async with self._opened() as memory:
            yield await self._erase(memory)

    async def _store(self, memory: OpenMemory) -> Stored:
        started = time.perf_counter()
        conversations = 0
        for identity, messages in _sessions(self._demo.messages):
            owner = owner_of(*identity)
            speaker = conversation_identity(owner)
            self._clock.advance(messages[-1].created_at)
            await memory.conversations.append_messages(speaker, messages)
            conversations += 1
        for fact in self._demo.memories:
            await self._remember(memory, fact)
        instants = [message.at for message in self._demo.messages]
        owners = sorted({name_of(each.tenant, each.user) for each in self._demo.messages})
        return Stored(
            conversations,
            len(self._demo.messages),
            len(self._demo.memories),
            tuple(owners),
            min(instants),
            max(instants),
            time.perf_counter() - started,
        )

    async def _remember(self, memory: OpenMemory, fact: DemoMemory) -> None:
        stored = await memory.remember(
            owner_of(fact.tenant, fact.user),
            fact.content,
            memory_type=MemoryType(fact.memory_type),
            scope=MemoryScope(fact.scope),
            trust=Trust(fact.trust),
            importance=fact.importance,
            valid_from=fact.valid_from,
            replaces=None if fact.replaces is None else self._stored[fact.replaces],
        )
        everyone = "" if fact.scope == MemoryScope.TENANT else fact.user
        self._whose[stored.memory_id] = (fact.tenant, everyone)
        self._stored.append(stored.memory_id)

    async def _recall(
        self, memory: OpenMemory, asked: DemoQuestion, owner: MemoryOwner | None = None
    ) -> tuple[RecalledMemory, ...]:
        return await memory.recall(
            owner or owner_of(asked.tenant, asked.user),
            asked.question,
            as_of=asked.as_of,
            top_k=TOP,
            max_tokens=None,
            explain=True,
        )

    async def _ask(self, memory: OpenMemory, asked: DemoQuestion) -> Answer:
        started = time.perf_counter()
        recalled = await self._recall(memory, asked)
        seconds = time.perf_counter() - started
        ranks = [
            rank
            for rank, each in enumerate(recalled, start=1)
            if each.memory.memory_id in asked.expect_message_ids
        ]
        foreign = sum(not self._belongs(each, asked.tenant, asked.user) for each in recalled)
        return Answer(asked, recalled, min(ranks, default=None), foreign, seconds)

    def _belongs(self, recalled: RecalledMemory, tenant: str, user: str) -> bool:
        """By the shipped data, not by what the store says."""
        whose = self._whose.get(recalled.memory.memory_id)
        return whose in ((tenant, user), (tenant, ""))

    def _changed(self) -> list[int]:
        """The last member of each user's first chain of facts that changed."""
        replaced = {fact.replaces for fact in self._demo.memories}
        heads: dict[str, int] = {}
        for index, fact in enumerate(self._demo.memories):
            if fact.replaces is not None and index not in replaced:
                heads.setdefault(name_of(fact.tenant, fact.user), index)
        late = [i for i, fact in enumerate(self._demo.memories) if self._is_late(fact)]
        return sorted({*heads.values(), *late})

    def _is_late(self, fact: DemoMemory) -> bool:
        if fact.replaces is None:
            return False
        return fact.valid_from < self._demo.memories[fact.replaces].valid_from

    async def _history(self, memory: OpenMemory, index: int) -> Changed:
        fact = self._demo.memories[index]
        started = time.perf_counter()
        chain = await memory.history(owner_of(fact.tenant, fact.user), self._stored[index])
        seconds = time.perf_counter() - started
        return Changed(name_of(fact.tenant, fact.user), tuple(chain), seconds)

    async def _isolation(self, memory: OpenMemory) -> Isolation:
        asked = self._demo.questions[0]
        others = {(each.tenant, each.user) for each in self._demo.messages}
        tenants = {tenant for tenant, _ in others}
        others |= {(tenant, asked.user) for tenant in tenants}
        others.discard((asked.tenant, asked.user))
        started = time.perf_counter()
        attempts = [await self._attempt(memory, asked, other) for other in sorted(others)]
        return Isolation(asked.question, tuple(attempts), time.perf_counter() - started)

    async def _attempt(
        self, memory: OpenMemory, asked: DemoQuestion, other: tuple[str, str]
    ) -> Attempt:
        owner = owner_of(*other)
        recalled = await self._recall(memory, asked, owner)
        hers = (asked.tenant, asked.user)
        stolen = sum(self._whose.get(each.memory.memory_id) == hers for each in recalled)
        found = await memory.manager.get(owner, self._stored[0])
        return Attempt(name_of(*other), len(recalled), stolen, found is not None)

    async def _restart(self, before: tuple[RecalledMemory, ...]) -> Restarted:
        asked = self._demo.questions[0]
        started = time.perf_counter()
        async with self._opened() as memory:
            opened = time.perf_counter()
            after = await self._recall(memory, asked)
            first = time.perf_counter()
            await self._recall(memory, asked)
            second = time.perf_counter()
        return Restarted(
            _ids(before) == _ids(after), opened - started, first - opened, second - first
        )

    async def _erase(self, memory: OpenMemory) -> Erasure:
        gone, other = self._demo.questions[-1], self._demo.questions[0]
        started = time.perf_counter()
        receipt = await memory.erase(owner_of(gone.tenant, gone.user))
        seconds = time.perf_counter() - started
        return Erasure(
            name_of(gone.tenant, gone.user),
            receipt.entries,
            receipt.sessions,
            receipt.messages,
            len(await self._recall(memory, gone)),
            len(await self._recall(memory, other)),
            seconds,
        )


def demo_clock(demo: Demo) -> DemoClock:
    """A clock at the story's beginning."""
    return DemoClock(min(message.at for message in demo.messages) - timedelta(days=1))


def _ids(recalled: Iterable[RecalledMemory]) -> list[str]:
    return [each.memory.memory_id for each in recalled]


def _sessions(
    messages: Iterable[DemoMessage],
) -> Iterable[tuple[tuple[str, str, str], list[ConversationMessage]]]:
    """The messages of each conversation, conversations in the order of their beginning."""
    by_session = sorted(messages, key=_session)
    groups = [(key, list(group)) for key, group in groupby(by_session, key=_session)]
    for key, group in sorted(groups, key=lambda pair: pair[1][0].at):
        yield key, [_message(each) for each in group]


def _session(message: DemoMessage) -> tuple[str, str, str]:
    return message.tenant, message.user, message.session


def _message(each: DemoMessage) -> ConversationMessage:
    return ConversationMessage(
        each.message_id, ConversationRole(each.role), each.content, each.at, name=each.name
    )
