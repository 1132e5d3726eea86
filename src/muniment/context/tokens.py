"""Counting and clipping by tokens, in one place for every budget."""

from __future__ import annotations

from collections.abc import Callable

from muniment.domain.conversation import ConversationMessage

TokenCounter = Callable[[str], int]

_ELLIPSIS = " … "


def approximate_tokens(text: str) -> int:
    """ceil(ASCII characters / 4) plus one for every other character; 0 for empty text."""
    ascii_count = len(text) if text.isascii() else sum(char < "\x80" for char in text)
    return -(-ascii_count // 4) + len(text) - ascii_count


def message_tokens(message: ConversationMessage, counter: TokenCounter) -> int:
    """The message's own count where it has one, else its text and tool calls counted."""
    if message.token_count is not None:
        return message.token_count
    return counter(message.content) + counter(message.tool_calls_json or "")


def clip(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """`text`, or its head and tail around an ellipsis, within `max_tokens` (at least 1)."""
    if counter(text) <= max_tokens:
        return text
    kept, clipped = len(text), ""
    while kept > 2:
        # A third at a time: a counter may cost more than a look at the text.
        kept = min(kept * 2 // 3, 4 * max_tokens)
        clipped = text[: kept - kept // 2] + _ELLIPSIS + text[len(text) - kept // 2 :]
        if counter(clipped) <= max_tokens:
            return clipped
    return text[:1]
