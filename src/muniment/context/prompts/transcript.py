"""Messages as text for a prompt, one line each; and what a reply says beside its thinking."""

from __future__ import annotations

import re

from muniment.context.rendering import plain_line
from muniment.domain.conversation import ConversationMessage

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)


def transcript_line(message: ConversationMessage) -> str:
    """`user (Ana): text`, on one line and unable to close a fence; tool calls are shown too."""
    speaker = f" ({plain_line(message.name)})" if message.name else ""
    calls = f" [calls {plain_line(message.tool_calls_json)}]" if message.tool_calls_json else ""
    return f"{message.role.value}{speaker}: {plain_line(message.content)}{calls}"


def without_thinking(reply: str) -> str:
    """`reply` without the `<think>` part that some models put before their answer."""
    return _THINKING.sub("", reply)
