"""What a conversation said, as data for the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from muniment.domain.content import says_something
from muniment.domain.conversation import ConversationMessage, ConversationRole, is_complete_reply

MAX_MESSAGE_CHARACTERS = 6_000
MAX_TRANSCRIPT_CHARACTERS = 30_000
_GAP = " [...] "


def spoken_messages(messages: Iterable[ConversationMessage]) -> tuple[ConversationMessage, ...]:
    """User messages and complete replies; nothing at all where no user said anything."""
    spoken = tuple(
        message for message in messages if _counts(message) and says_something(message.content)
    )
    asked = any(message.role is ConversationRole.USER for message in spoken)
    return spoken if asked else ()


def _counts(message: ConversationMessage) -> bool:
    if message.role is ConversationRole.USER:
        return not message.partial
    return is_complete_reply(message)


def transcript(messages: Sequence[ConversationMessage]) -> str:
    """One JSON object a line, oldest first, the newest kept where all would be too long."""
    lines: list[str] = []
    room = MAX_TRANSCRIPT_CHARACTERS
    for message in reversed(messages):
        line = _line(message)
        room -= len(line)
        if lines and room < 0:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def topic(messages: Sequence[ConversationMessage], *, limit: int = 2_000) -> str:
    """What the users said, newest last, clipped to `limit` characters: a query for memories."""
    said = [message.content for message in messages if message.role is ConversationRole.USER]
    return clip("\n".join(said), limit)


def clip(text: str, limit: int) -> str:
    """Head and tail of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = (limit - len(_GAP)) // 2
    return f"{text[:half]}{_GAP}{text[-half:]}"


def untagged(text: str) -> str:
    """`text` with its angle brackets escaped: it can neither open nor close a tag."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _line(message: ConversationMessage) -> str:
    said = {
        "role": message.role.value,
        "date": message.created_at.date().isoformat(),
        "content": clip(message.content, MAX_MESSAGE_CHARACTERS),
    }
    if message.name:
        said["name"] = message.name
    return untagged(json.dumps(said, ensure_ascii=False))
