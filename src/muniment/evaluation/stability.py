"""Whether recall stays the same: after a restart, after `reindex`, beside other tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from muniment.context.recall import RecalledMemory
from muniment.evaluation.dataset import Conversation
from muniment.evaluation.product_path import Setup, ask, opened, store

TOLERANCE = 1e-6

Found = Sequence[Sequence[RecalledMemory]]


@dataclass(frozen=True, slots=True)
class Stability:
    """For each change, how many of the questions were then answered with other ids, in another
    order, or with scores more than :data:`TOLERANCE` apart."""

    questions: int
    after_other_tenants: int
    after_restart: int
    after_reindex: int

    def is_the_same(self) -> bool:
        """Whether nothing changed anything."""
        return not (self.after_other_tenants or self.after_restart or self.after_reindex)


async def stability(
    conversation: Conversation, setup: Setup, *, tenants: int, limit: int = 20
) -> Stability:
    """Ask, store a few messages of the conversation in each of many other tenants, and ask
    again; then after opening the store anew, and after rebuilding its index."""
    tenant = uuid4().hex
    async with _place(setup) as there:
        async with opened(conversation, there) as memory:
            await store(memory, tenant, conversation)
            first = await ask(memory, tenant, conversation, limit=limit)
            for number in range(tenants):
                await store(memory, uuid4().hex, _piece(conversation, number))
            crowded = await ask(memory, tenant, conversation, limit=limit)
        async with opened(conversation, there) as memory:
            restarted = await ask(memory, tenant, conversation, limit=limit)
            await memory.store.reindex()
            reindexed = await ask(memory, tenant, conversation, limit=limit)
    changes = (_changed(first, later) for later in (crowded, restarted, reindexed))
    return Stability(len(first), *changes)


@asynccontextmanager
async def _place(setup: Setup) -> AsyncIterator[Setup]:
    with TemporaryDirectory() as folder:
        yield replace(setup, url=setup.url or f"sqlite:///{Path(folder)}/stable.db")


def _piece(conversation: Conversation, number: int, size: int = 3) -> Conversation:
    start = number * size % max(1, len(conversation.messages) - size)
    messages = conversation.messages[start : start + size]
    return replace(conversation, messages=messages, memories=conversation.memories[:1])


def _changed(first: Found, later: Found) -> int:
    return sum(not _alike(*pair) for pair in zip(first, later, strict=True))


def _alike(one: Sequence[RecalledMemory], other: Sequence[RecalledMemory]) -> bool:
    if [each.memory.memory_id for each in one] != [each.memory.memory_id for each in other]:
        return False
    return all(abs(a.score - b.score) <= TOLERANCE for a, b in zip(one, other, strict=True))
