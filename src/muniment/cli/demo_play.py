"""The demonstration's steps, as data: nothing here prints."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from muniment.cli.demo_model import ModelTurn, model_turn
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
from muniment.ports import MemoryModel

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

TOP = 6
Progress = Callable[[int, int], None]
"""Called with how many messages are stored, and of how many."""

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

    `ranks` are those of what answers it (from 1), `foreign` how many of the recalled are
    somebody else's by the shipped data.
    """

    asked: DemoQuestion
    recalled: tuple[RecalledMemory, ...]
    ranks: tuple[int, ...]
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
    """Somebody asks for what is another's: how much came back, how much of it was that one's."""

    who: str
    recalled: int
    stolen: int
    found_by_id: bool


@dataclass(frozen=True, slots=True)
class Isolation:
    """One user's question from others."""

    whose: str
    question: str
    attempts: tuple[Attempt, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Restarted:
    """The file closed and opened again: the same recall, and the time of each part."""

    same: bool
    first_seconds: float
    again_seconds: float


@dataclass(frozen=True, slots=True)
class Erasure:
    """One user erased: the counts, and what is recalled of them and of another after it.

    `receipt` is what the erasure gave; `verified` whether the audit log is sound and holds it,
    with its number of `records` and the `last_hash` to keep elsewhere.
    """

    who: str
    memories: int
    derived: int
    conversations: int
    messages: int
    pending: bool
    left: int
    others: int
    receipt: str | None
    verified: bool
    records: int
    last_hash: str
    seconds: float
    verifying_seconds: float


Section = Stored | Answer | Changed | Isolation | Restarted | ModelTurn | Erasure


def unseen(done: int, of: int, /) -> None:
    """A progress that nobody watches."""


def name_of(tenant: str, user: str) -> str:
    """A user and their tenant, for people."""
    return f"{user}@{tenant}"


class Play:
    """The steps over one store. `opened` opens it, and must open the same one each time."""

    def __init__(
        self, demo: Demo, opened: Opened, clock: DemoClock, progress: Progress | None = None
    ) -> None:
        self._demo = demo
        self._progress = progress or unseen
        self._done = 0
        self._opened = opened
        self._clock = clock
        self._stored: dict[int, str] = {}
        self._whose = {each.message_id: (each.tenant, each.user) for each in demo.messages}

    async def run(self) -> AsyncGenerator[Section]:
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
            if memory.model is not None:
                yield await self._turn(memory, memory.model)
            yield await self._erase(memory)

    async def _store(self, memory: OpenMemory) -> Stored:
        """Everything in the order in which it happened, the clock going along."""
        started = time.perf_counter()
        conversations = list(_sessions(self._demo.messages))
        events: list[tuple[datetime, Callable[[], Awaitable[None]]]] = [
            (messages[-1].created_at, partial(self._append, memory, identity, messages))
            for identity, messages in conversations
        ]
        told = _told(self._demo.memories)
        for index, fact in enumerate(self._demo.memories):
            events.append((told[index], partial(self._remember, memory, index, fact)))
        for instant, event in sorted(events, key=itemgetter(0)):
            self._clock.advance(instant)
            await event()
        return self._stored_in(len(conversations), time.perf_counter() - started)

    async def _append(
        self,
        memory: OpenMemory,
        identity: tuple[str, str, str],
        messages: Sequence[ConversationMessage],
    ) -> None:
        speaker = conversation_identity(owner_of(*identity))
        await memory.conversations.append_messages(speaker, messages)
        self._done += len(messages)
        self._progress(self._done, len(self._demo.messages))

    def _stored_in(self, conversations: int, seconds: float) -> Stored:
        instants = [message.at for message in self._demo.messages]
        return Stored(
            conversations=conversations,
            messages=len(self._demo.messages),
            memories=len(self._demo.memories),
            owners=tuple(sorted({name_of(m.tenant, m.user) for m in self._demo.messages})),
            first=min(instants),
            last=max(instants),
            seconds=seconds,
        )

    async def _remember(self, memory: OpenMemory, index: int, fact: DemoMemory) -> None:
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
        self._stored[index] = stored.memory_id

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
        wanted = {*asked.expect_message_ids, *(self._stored[i] for i in asked.expect_memories)}
        answers = tuple(
            rank for rank, each in enumerate(recalled, start=1) if each.memory.memory_id in wanted
        )
        foreign = sum(not self._belongs(each, asked.tenant, asked.user) for each in recalled)
        return Answer(asked, recalled, answers, foreign, seconds)

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
        whose = (asked.tenant, asked.user)
        others.discard(whose)
        started = time.perf_counter()
        attempts = [await self._attempt(memory, asked, other) for other in sorted(others)]
        return Isolation(
            name_of(*whose), asked.question, tuple(attempts), time.perf_counter() - started
        )

    async def _attempt(
        self, memory: OpenMemory, asked: DemoQuestion, other: tuple[str, str]
    ) -> Attempt:
        owner = owner_of(*other)
        recalled = await self._recall(memory, asked, owner)
        whose = (asked.tenant, asked.user)
        stolen = sum(self._whose.get(each.memory.memory_id) == whose for each in recalled)
        found = await memory.manager.get(owner, self._stored[0])
        return Attempt(name_of(*other), len(recalled), stolen, found is not None)

    async def _restart(self, before: tuple[RecalledMemory, ...]) -> Restarted:
        asked = self._demo.questions[0]
        started = time.perf_counter()
        async with self._opened() as memory:
            after = await self._recall(memory, asked)
            first = time.perf_counter()
            await self._recall(memory, asked)
            second = time.perf_counter()
        return Restarted(_ids(before) == _ids(after), first - started, second - first)

    async def _turn(self, memory: OpenMemory, model: MemoryModel) -> ModelTurn:
        asked = self._demo.questions[0]
        whose = (asked.tenant, asked.user)
        last = [each.session for each in self._demo.messages if (each.tenant, each.user) == whose]
        return await model_turn(memory, model, asked, last[-1], name_of(*whose))

    async def _erase(self, memory: OpenMemory) -> Erasure:
        gone, other = self._demo.questions[-1], self._demo.questions[0]
        started = time.perf_counter()
        result = await memory.erase(owner_of(gone.tenant, gone.user))
        erased = time.perf_counter()
        verified = await memory.store.verify_audit(receipt=result.receipt)
        ended = time.perf_counter()
        return Erasure(
            who=name_of(gone.tenant, gone.user),
            memories=result.entries,
            derived=result.derived,
            conversations=result.sessions,
            messages=result.messages,
            pending=result.pending,
            left=len(await self._recall(memory, gone)),
            others=len(await self._recall(memory, other)),
            receipt=result.receipt,
            verified=verified is not None and verified.ok,
            records=0 if verified is None else verified.records,
            last_hash="" if verified is None else verified.last_hash,
            seconds=erased - started,
            verifying_seconds=ended - erased,
        )


def demo_clock(demo: Demo) -> DemoClock:
    """A clock at the story's beginning."""
    return DemoClock(min(message.at for message in demo.messages) - timedelta(days=1))


def _told(facts: Sequence[DemoMemory]) -> list[datetime]:
    """When each fact is told: as soon as it holds, and after the one that it replaces."""
    told: list[datetime] = []
    for fact in facts:
        before = fact.valid_from if fact.replaces is None else told[fact.replaces]
        told.append(max(fact.valid_from, before))
    return told


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
