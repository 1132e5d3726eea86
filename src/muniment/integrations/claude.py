"""A conversation of a Claude data export (`conversations.json`): what both sides said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.domain.conversation import ConversationRole
from muniment.errors import InvalidEntryError
from muniment.integrations.exported_chats import (
    ChatParts,
    ExportedChat,
    instant_of,
    mapping_of,
    session_of,
    text_of,
)

SESSION_PREFIX = "claude-"
_ROLES = {"human": ConversationRole.USER, "assistant": ConversationRole.ASSISTANT}


def is_conversation(record: Mapping[str, Any]) -> bool:
    """Whether `record` has this export's shape."""
    return "chat_messages" in record


def chat_of(record: Mapping[str, Any], name: str) -> ExportedChat:
    """The conversation of `record`; InvalidEntryError where its shape is another."""
    session = session_of(SESSION_PREFIX, record.get("uuid"), f"{name}: uuid")
    parts = ChatParts(session, record.get("name"))
    messages = record["chat_messages"]
    if not isinstance(messages, list):
        raise InvalidEntryError(f"{name}: chat_messages: must be a list")
    for number, given in enumerate(messages, start=1):
        message = mapping_of(given, f"{name}, message {number}")
        _add(parts, message, f"{name}, message {number}")
    return parts.finished()


def _add(parts: ChatParts, message: Mapping[str, Any], name: str) -> None:
    role = _ROLES.get(text_of(message.get("sender"), f"{name}: sender"))
    if role is None:
        parts.leave_out()
        return
    parts.add(
        text_of(message.get("uuid"), f"{name}: uuid"),
        role,
        _words(message),
        instant_of(message.get("created_at"), f"{name}: created_at"),
    )


def _words(message: Mapping[str, Any]) -> str:
    """The text blocks; the older form had the whole text in one field."""
    blocks = message.get("content")
    texts = [
        block["text"]
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]
    whole = message.get("text")
    return "\n".join(texts) if texts or not isinstance(whole, str) else whole
