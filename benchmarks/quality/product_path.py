"""The product's own path: messages appended through a store, questions asked through recall."""

from __future__ import annotations

from itertools import groupby
from tempfile import TemporaryDirectory
from uuid import uuid4

from benchmarks.quality.dataset import Conversation, Message
from muniment import ConversationIdentity, ConversationMessage, MemoryOwner, open_memory

_USER = "reader"


async def rankings(
    conversation: Conversation, *, embedder: str | None, url: str | None, limit: int
) -> list[list[str]]:
    """The ids found for each question, best first; no budget, in a tenant of its own."""
    tenant = uuid4().hex
    owner = MemoryOwner(tenant_id=tenant, user_id=_USER, session_id="asking")
    found: list[list[str]] = []
    with TemporaryDirectory() as folder:
        where = url or f"sqlite:///{folder}/quality.db"
        async with open_memory(where, embedder=embedder) as memory:
            for session, messages in groupby(conversation.messages, lambda one: one.session):
                identity = ConversationIdentity(
                    tenant_id=tenant, principal_id=_USER, session_id=session, user_id=_USER
                )
                await memory.conversations.append_messages(
                    identity, [_message(one) for one in messages]
                )
            for asked in conversation.questions:
                recalled = await memory.recall(owner, asked.text, top_k=limit, max_tokens=None)
                found.append([one.memory_id for one in recalled])
    return found


def _message(message: Message) -> ConversationMessage:
    return ConversationMessage(
        message_id=message.id,
        role=message.role,
        content=message.text,
        created_at=message.created_at,
        name=message.name or None,
    )
