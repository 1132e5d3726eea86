"""A conversation's message in the form in which recall answers it."""

from __future__ import annotations

from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope


def is_searchable(message: ConversationMessage) -> bool:
    """System and blank messages are never recalled, so they have no index."""
    return message.role is not ConversationRole.SYSTEM and bool(message.content.strip())


def spoken(content: str, name: str | None) -> str:
    """What is embedded of a message: who speaks belongs to what it means."""
    return content if name is None else f"{name}: {content}"


def recalled_message(
    tenant_id: str,
    user_id: str,
    *,
    message: ConversationMessage,
    session_id: str,
    session_only: bool = False,
) -> Memory:
    """The message as an untrusted memory of its user, or of its session.

    ``metadata`` says who spoke: ``role``, and ``name`` where the message has one.
    """
    named = {} if message.name is None else {"name": message.name}
    return Memory(
        memory_id=message.message_id,
        scope=MemoryScope.SESSION if session_only else MemoryScope.USER,
        memory_type=MemoryType.CONVERSATION,
        owner=MemoryOwner(
            tenant_id, user_id=user_id, session_id=session_id if session_only else None
        ),
        content=message.content,
        metadata={"role": message.role.value, **named},
        created_at=message.created_at,
        source_session_id=session_id,
        source_message_ids=(message.message_id,),
    )


def same_message(stored: ConversationMessage, given: ConversationMessage) -> bool:
    """A repeated delivery; its time and token count may have been taken anew."""
    return all(
        getattr(stored, name) == getattr(given, name)
        for name in ("message_id", "role", "content", "tool_calls_json", "tool_call_id")
    )
