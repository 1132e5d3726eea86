"""A conversation's message in the form in which recall answers it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
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

Said = tuple[str, str, str, datetime, str | None]
"""A message's id, role, content, time and speaker's name."""


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
    return recalled_row(
        _owner(tenant_id, user_id, session_id if session_only else None),
        session_id,
        (message.message_id, message.role, message.content, message.created_at, message.name),
    )


def recalled_row(owner: MemoryOwner, session_id: str, said: Said) -> Memory:
    """:func:`recalled_message` of what a store has read; of a session where the owner has one."""
    message_id, role, content, created_at, name = said
    return _memory(
        message_id,
        MemoryScope.USER if owner.session_id is None else MemoryScope.SESSION,
        MemoryType.CONVERSATION,
        owner,
        content,
        _spoken_by(str(role), name),
        0.5,  # importance
        created_at,
        created_at,
        *(None, None, None, None),  # never expires, always valid, not superseded
        session_id,
        (message_id,),
        *((), (), None),  # not derived, no entities, no content hash
        Trust.UNTRUSTED,
        *(None, None),  # no source, no agent
    )


@lru_cache(maxsize=1_024)
def _owner(tenant_id: str, user_id: str, session_id: str | None) -> MemoryOwner:
    return MemoryOwner(tenant_id, user_id=user_id, session_id=session_id)


@lru_cache(maxsize=1_024)
def _spoken_by(role: str, name: str | None) -> Mapping[str, Any]:
    named = {} if name is None else {"name": name}
    return freeze_mapping("metadata", {"role": role, **named})


def same_message(stored: ConversationMessage, given: ConversationMessage) -> bool:
    """A repeated delivery; its time and token count may have been taken anew."""
    return all(
        getattr(stored, name) == getattr(given, name)
        for name in ("message_id", "role", "content", "tool_calls_json", "tool_call_id")
    )
