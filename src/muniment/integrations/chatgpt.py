"""A conversation of a ChatGPT data export (`conversations.json`).

Each conversation is a tree of messages: an edited question or a regenerated answer is a branch.
What is read is the branch that was shown last, and of it what the user and the assistant said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from muniment.domain.conversation import ConversationRole
from muniment.errors import InvalidEntryError
from muniment.integrations.exported_chats import (
    ChatParts,
    ExportedChat,
    instant_of,
    mapping_of,
    session_of,
)

SESSION_PREFIX = "chatgpt-"
_ROLES = {"user": ConversationRole.USER, "assistant": ConversationRole.ASSISTANT}
_SPOKEN = ("text", "multimodal_text")


def is_conversation(record: Mapping[str, Any]) -> bool:
    """Whether `record` has this export's shape."""
    return "mapping" in record


def chat_of(record: Mapping[str, Any], name: str) -> ExportedChat:
    """The conversation of `record`; InvalidEntryError where its shape is another."""
    key = record.get("conversation_id", record.get("id"))
    parts = ChatParts(session_of(SESSION_PREFIX, key, f"{name}: id"), record.get("title"))
    at = record.get("create_time")
    began = None if at is None else instant_of(at, f"{name}: create_time")
    for node_id, node in _branch(record, name):
        if node.get("message") is not None:
            message = mapping_of(node["message"], f"{name}: message")
            began = _time(message, name) or began
            _add(parts, node_id, message, began, name)
    return parts.finished()


def _branch(record: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The nodes from the root to the one that was shown last."""
    nodes = mapping_of(record["mapping"], f"{name}: mapping")
    node_id = record.get("current_node")
    if node_id is None:  # nothing was shown last: the last leaf stands for it
        node_id = next((key for key in reversed(nodes) if not _children(nodes[key])), None)
    path: dict[str, Mapping[str, Any]] = {}
    while node_id is not None:
        if not isinstance(node_id, str) or node_id not in nodes:
            raise InvalidEntryError(f"{name}: a message's parent is not in it")
        if node_id in path:
            raise InvalidEntryError(f"{name}: its messages form a circle")
        path[node_id] = mapping_of(nodes[node_id], f"{name}: message")
        node_id = path[node_id].get("parent")
    return reversed(path.items())


def _children(node: object) -> object:
    return isinstance(node, dict) and node.get("children")


def _add(
    parts: ChatParts,
    node_id: str,
    message: Mapping[str, Any],
    created_at: datetime | None,
    name: str,
) -> None:
    role = _ROLES.get(_author(message))
    content = message.get("content")
    kind = content.get("content_type") if isinstance(content, dict) else None
    if role is None or kind not in _SPOKEN or not _is_shown(message):
        parts.leave_out()
        return
    if created_at is None:
        raise InvalidEntryError(f"{name}: neither it nor its message has a create_time")
    parts.add(node_id, role, _words(content, name), created_at)


def _author(message: Mapping[str, Any]) -> str:
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    return role if isinstance(role, str) else ""


def _is_shown(message: Mapping[str, Any]) -> bool:
    """Whether it was addressed to the reader rather than to a tool, and not hidden."""
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return message.get("recipient", "all") == "all" and not hidden and message.get("weight") != 0


def _words(content: object, name: str) -> str:
    parts = mapping_of(content, f"{name}: content").get("parts")
    if not isinstance(parts, list):
        raise InvalidEntryError(f"{name}: content.parts: must be a list")
    spoken = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(text for text in spoken if isinstance(text, str) and text)


def _time(message: Mapping[str, Any], name: str) -> datetime | None:
    at = message.get("create_time")
    return None if at is None else instant_of(at, f"{name}: create_time")
