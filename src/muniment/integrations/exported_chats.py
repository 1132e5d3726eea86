"""Conversations that another system gave out, in our form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muniment.domain import checks
from muniment.domain.conversation import (
    MAX_CONVERSATION_TITLE_LENGTH,
    ConversationMessage,
    ConversationRole,
)
from muniment.errors import InvalidEntryError

MAX_CHATS = 100_000
MAX_CHAT_CHARACTERS = 64 << 20


@dataclass(frozen=True, slots=True)
class ExportedChat:
    """One conversation, or the next part of one, oldest message first.

    `unspoken` counts what was not said by a person or to one (tool calls, hidden instructions,
    attachments without words), `refused` what no store takes (a NUL, over 1 MiB).
    """

    session_id: str
    title: str | None
    messages: tuple[ConversationMessage, ...]
    unspoken: int = 0
    refused: int = 0


class ChatParts:
    """Collects one exported conversation; a message that no store takes is counted, not fatal."""

    def __init__(self, session_id: str, title: object) -> None:
        self._session_id = session_id
        self._title = shortened_title(title)
        self._messages: dict[str, ConversationMessage] = {}
        self._unspoken = self._refused = 0

    def leave_out(self) -> None:
        """Count what nobody said."""
        self._unspoken += 1

    def add(
        self, message_id: str, role: ConversationRole, content: str, created_at: datetime
    ) -> None:
        """Keep what was said; blank content was not."""
        if not content.strip():
            self.leave_out()
            return
        try:
            message = ConversationMessage(message_id, role, content, created_at)
        except ValueError:
            self._refused += 1
            return
        self._messages.setdefault(message.message_id, message)

    def finished(self) -> ExportedChat:
        """What was collected."""
        said = tuple(self._messages.values())
        return ExportedChat(self._session_id, self._title, said, self._unspoken, self._refused)


def mapping_of(value: object, name: str) -> dict[str, Any]:
    """`value` as an object."""
    if not isinstance(value, dict):
        raise InvalidEntryError(f"{name}: must be an object")
    return value


def text_of(value: object, name: str) -> str:
    """`value` as text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidEntryError(f"{name}: must be text that is not blank")
    return value


def session_of(prefix: str, value: object, name: str) -> str:
    """The session that stands for an exported conversation: never one of the user's own."""
    try:
        return checks.identifier("id", prefix + text_of(value, name))
    except ValueError:
        raise InvalidEntryError(f"{name}: is no identifier") from None


def instant_of(value: object, name: str) -> datetime:
    """ISO 8601 (UTC where it names no zone), or seconds since 1970, in UTC."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidEntryError(f"{name}: must be ISO 8601, or seconds since 1970")


def shortened_title(value: object) -> str | None:
    """A title that fits; None for what is none."""
    if not isinstance(value, str) or "\x00" in value:
        return None
    text = value.encode("utf-8", "ignore").decode("utf-8").strip()
    return text[:MAX_CONVERSATION_TITLE_LENGTH].strip() or None
