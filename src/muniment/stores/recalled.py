"""A conversation's message in the form in which recall answers it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.frozen import freeze_mapping
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.unchecked import unchecked

# A message was checked when it was made, and every recall makes a hundred of these.
_memory = unchecked(Memory)


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
    said = message.created_at
    return _memory(
        message.message_id,
        MemoryScope.SESSION if session_only else MemoryScope.USER,
        MemoryType.CONVERSATION,
        _owner(tenant_id, user_id, session_id if session_only else None),
        message.content,
        _spoken_by(message.role, message.name),
        0.5,  # importance
        said,
        said,
        *(None, None, None, None),  # never expires, always valid, not superseded
        session_id,
        (message.message_id,),
        *((), (), None),  # not derived, no entities, no content hash
        Trust.UNTRUSTED,
        *(None, None),  # no source, no agent
    )


@lru_cache(maxsize=1_024)
def _owner(tenant_id: str, user_id: str, session_id: str | None) -> MemoryOwner:
    return MemoryOwner(tenant_id, user_id=user_id, session_id=session_id)


@lru_cache(maxsize=1_024)
def _spoken_by(role: ConversationRole, name: str | None) -> Mapping[str, Any]:
    named = {} if name is None else {"name": name}
    return freeze_mapping("metadata", {"role": role.value, **named})


def same_message(stored: ConversationMessage, given: ConversationMessage) -> bool:
    """A repeated delivery; its time and token count may have been taken anew."""
    return all(
        getattr(stored, name) == getattr(given, name)
        for name in ("message_id", "role", "content", "tool_calls_json", "tool_call_id")
    )
