"""The window: the newest messages, replayed verbatim within a budget."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.context.tokens import TokenCounter, approximate_tokens, message_tokens
from muniment.domain.conversation import ConversationMessage, ConversationRole

Messages = tuple[ConversationMessage, ...]


def trim_window(
    messages: Sequence[ConversationMessage],
    *,
    max_tokens: int,
    counter: TokenCounter = approximate_tokens,
) -> Messages:
    """The newest of `messages` (oldest first) within `max_tokens`, opening on a user message.

    Where no such window fits, the newest message alone, a tool result together with its call:
    the only case in which the budget is exceeded.
    """
    start = _fitting(messages, max_tokens, counter)
    for place in range(start, len(messages)):
        if messages[place].role is ConversationRole.USER:
            return tuple(messages[place:])
    return tuple(messages[_newest_whole(messages) :])


def keep_boundary(messages: Sequence[ConversationMessage], keep: int) -> int:
    """Where the last `keep` messages begin, walked back to a user message; 0 without one."""
    place = max(0, len(messages) - keep)
    while place > 0 and messages[place].role is not ConversationRole.USER:
        place -= 1
    return place


def window_tokens(messages: Sequence[ConversationMessage], counter: TokenCounter) -> int:
    """Tokens of all `messages` together."""
    return sum(message_tokens(message, counter) for message in messages)


def _fitting(
    messages: Sequence[ConversationMessage], max_tokens: int, counter: TokenCounter
) -> int:
    left, place = max_tokens, len(messages)
    while place > 0:
        left -= message_tokens(messages[place - 1], counter)
        if left < 0:
            break
        place -= 1
    return place


def _newest_whole(messages: Sequence[ConversationMessage]) -> int:
    newest = max(0, len(messages) - 1)
    place = newest
    while place > 0 and messages[place].role is ConversationRole.TOOL:
        place -= 1
    called = bool(messages) and bool(messages[place].tool_calls_json)
    return place if called else newest
