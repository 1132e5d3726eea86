"""What the model is asked: instructions, passages, history, and the question once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from muniment.context.tokens import approximate_tokens
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.owner import MemoryOwner
from muniment.ports import ConversationMessageStore
from muniment.server.metrics import Metrics
from muniment.wiring import OpenMemory

EXCHANGES = 3
_log = logging.getLogger("muniment.server.completions")

Message = dict[str, Any]


async def history(
    messages: ConversationMessageStore, identity: ConversationIdentity, metrics: Metrics
) -> tuple[ConversationMessage, ...]:
    """The newest three completed exchanges; none where they cannot be read."""
    try:
        return tuple(await messages.recent_complete_messages(identity, limit=EXCHANGES))
    except Exception as error:
        metrics.degraded("history")
        _log.warning("history of %s left out (%s)", identity.session_id, type(error).__name__)
        return ()


def within(
    pairs: Sequence[ConversationMessage], others: Sequence[Message], *, budget: int
) -> list[Message]:
    """The newest whole exchanges that fit beside `others` in `budget` tokens (0: no bound)."""
    left = budget - sum(approximate_tokens(str(each.get("content") or "")) for each in others)
    kept: list[Message] = []
    for start in range(len(pairs) - 2, -1, -2):
        pair = pairs[start : start + 2]
        left -= sum(approximate_tokens(each.content) for each in pair)
        if budget and left < 0:
            break
        kept[:0] = [{"role": each.role.value, "content": each.content} for each in pair]
    return kept


async def full_context(
    memory: OpenMemory, owner: MemoryOwner, question: str
) -> tuple[list[Message], list[Message], int]:
    """The per-turn context: notes that lead the prompt, the window, and the notes' tokens."""
    context = await memory.context(owner, question)
    notes = [text for text in (context.render_summary(), context.render()) if text]
    leading = [{"role": "system", "content": text} for text in notes]
    window = [
        {"role": each.role.value, "content": each.content}
        for each in context.messages
        if each.role.value in ("user", "assistant") and each.content.strip()
    ]
    return leading, window, sum(map(approximate_tokens, notes))
