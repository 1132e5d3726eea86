"""Filling a store through its own ports."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from benchmarks.latency.texts import Texts, chunks
from muniment import (
    ConversationIdentity,
    ConversationMessage,
    Memory,
    MemoryOwner,
    MemoryScope,
    MemoryType,
    OpenMemory,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
USER = "reader"
TYPES = (MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.DECISION, MemoryType.EPISODE)
_TOGETHER = 256
_A_SESSION = 50


def owner_in(tenant: str, session: str = "asking") -> MemoryOwner:
    """The one who asks."""
    return MemoryOwner(tenant_id=tenant, user_id=USER, principal_id=USER, session_id=session)


def url_of(folder: str | Path) -> str:
    """A SQLite file in `folder`."""
    return f"sqlite:///{folder}/speed.db"


@cache
def _texts(seed: int) -> Texts:
    return Texts(seed)


async def add_memories(memory: OpenMemory, tenant: str, count: int, *, seed: int = 3) -> None:
    """`count` typed memories of one user, one minute apart."""
    texts = _texts(seed)
    owner = MemoryOwner(tenant_id=tenant, user_id=USER)
    for part in chunks(count, _TOGETHER):
        made = [_memory(owner, number, texts.sentence()) for number in part]
        await asyncio.gather(*(memory.store.memories.save(one) for one in made))


def _memory(owner: MemoryOwner, number: int, text: str) -> Memory:
    return Memory(
        memory_id=f"m{number}",
        scope=MemoryScope.USER,
        memory_type=TYPES[number % len(TYPES)],
        owner=owner,
        content=text,
        created_at=START + timedelta(minutes=number),
    )


async def add_messages(
    memory: OpenMemory, tenant: str, count: int, *, seed: int = 4, a_session: int = _A_SESSION
) -> None:
    """`count` messages of one user, the speakers in turn."""
    texts = _texts(seed)
    for part in chunks(count, a_session):
        identity = ConversationIdentity(
            tenant_id=tenant, principal_id=USER, session_id=f"s{part.start}", user_id=USER
        )
        messages = [_message(number, texts.sentence()) for number in part]
        await memory.conversations.append_messages(identity, messages)


def _message(number: int, text: str) -> ConversationMessage:
    spoken = ("user", "Ana") if number % 2 else ("assistant", "Bo")
    return ConversationMessage(
        message_id=f"t{number}",
        role=spoken[0],
        content=text,
        created_at=START + timedelta(minutes=number),
        name=spoken[1],
    )
