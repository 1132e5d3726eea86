"""The product's own path: messages appended through a store, questions asked through recall."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from tempfile import TemporaryDirectory
from uuid import uuid4

from muniment.context.recall import RecalledMemory
from muniment.domain.conversation import ConversationIdentity, ConversationMessage, ConversationRole
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.evaluation.dataset import Conversation, Message
from muniment.ports import MemoryEmbedder
from muniment.wiring import OpenMemory, open_memory

_USER = "reader"


@dataclass(frozen=True, slots=True)
class Setup:
    """How the product is set up for measuring.

    Without a ``url`` a SQLite file is made and removed again. ``at_the_end`` asks as of the last
    message, so that recency counts; else now, when all is long ago.
    """

    embedder: str | MemoryEmbedder | None = "auto"
    ranking: str | None = None
    url: str | None = None
    at_the_end: bool = False


async def rankings(conversation: Conversation, setup: Setup, *, limit: int) -> list[list[str]]:
    """The ids found for each question, best first; no budget, in a tenant of its own."""
    tenant = uuid4().hex
    async with opened(conversation, setup) as memory:
        await store(memory, tenant, conversation)
        found = await ask(memory, tenant, conversation, limit=limit)
    return [[one.memory.memory_id for one in each] for each in found]


@asynccontextmanager
async def opened(conversation: Conversation, setup: Setup) -> AsyncIterator[OpenMemory]:
    """The memory of ``setup``, its clock standing where the conversation ends if so wished."""
    end = max((one.created_at for one in conversation.messages), default=None)
    with TemporaryDirectory() as folder:
        async with open_memory(
            setup.url or f"sqlite:///{folder}/quality.db",
            embedder=setup.embedder,
            ranking=setup.ranking,
            clock=(lambda: end) if setup.at_the_end and end else None,
        ) as memory:
            yield memory


async def store(memory: OpenMemory, tenant: str, conversation: Conversation) -> None:
    """Put a conversation's memories and messages into a tenant, session by session."""
    owner = MemoryOwner(tenant_id=tenant, user_id=_USER)
    for known in conversation.memories:
        await memory.manager.save(
            owner,
            Memory(
                memory_id=known.id,
                scope=MemoryScope.USER,
                memory_type=MemoryType(known.type),
                owner=owner,
                content=known.text,
                created_at=known.created_at,
            ),
        )
    for session, messages in groupby(conversation.messages, lambda one: one.session):
        identity = ConversationIdentity(
            tenant_id=tenant, principal_id=_USER, session_id=session, user_id=_USER
        )
        await memory.conversations.append_messages(identity, [_message(one) for one in messages])


async def ask(
    memory: OpenMemory, tenant: str, conversation: Conversation, *, limit: int
) -> list[tuple[RecalledMemory, ...]]:
    """What is recalled for each question, from a session of its own."""
    owner = MemoryOwner(tenant_id=tenant, user_id=_USER, session_id="asking")
    return [
        await memory.recall(owner, asked.text, top_k=limit, max_tokens=None, explain=True)
        for asked in conversation.questions
    ]


def _message(message: Message) -> ConversationMessage:
    return ConversationMessage(
        message_id=message.id,
        role=ConversationRole(message.role),
        content=message.text,
        created_at=message.created_at,
        name=message.name or None,
    )
