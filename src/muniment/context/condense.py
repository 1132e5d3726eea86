"""Condensing a question in its conversation into one standalone query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.context.prompts import condense as prompt
from muniment.context.prompts.transcript import transcript_line, without_thinking
from muniment.context.result import CondenseResult
from muniment.context.tokens import TokenCounter, clip
from muniment.domain.conversation import ConversationMessage
from muniment.domain.memory import MemoryType
from muniment.errors import StructuredOutputUnsupported
from muniment.ports import MemoryModel

MAX_WANTED_TYPES = 3
WANTED_TYPES = (
    MemoryType.FACT,
    MemoryType.PREFERENCE,
    MemoryType.DECISION,
    MemoryType.EPISODE,
)
_PART_TOKENS = 1_000
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」"}
# What a model raises that has no structured output, or whose reply is not of the schema.
_NOT_STRUCTURED = (StructuredOutputUnsupported, NotImplementedError, ValueError, TypeError)


async def condense(
    model: MemoryModel,
    question: str,
    *,
    summary: str,
    window: Sequence[ConversationMessage],
    counter: TokenCounter,
) -> CondenseResult:
    """The standalone query and wanted types; the question itself where the rewrite is refused.

    Raises what the model raises.
    """
    lines = [clip(transcript_line(message), _PART_TOKENS, counter) for message in window]
    asked = clip(question, _PART_TOKENS, counter)
    user = prompt.user_prompt(clip(summary, _PART_TOKENS, counter), lines, asked)
    result = await _structured(model, user)
    if result is None:
        result = CondenseResult(await _plain(model, user))
    return CondenseResult(accepted_query(question, result.query), result.wanted_types)


def accepted_query(question: str, rewrite: str) -> str:
    """`rewrite` without surrounding quotes; `question` where it is empty or far too long."""
    text = _unquoted(rewrite.strip())
    return text if text and len(text) <= 4 * len(question) + 200 else question


def wanted_types(names: Iterable[object]) -> tuple[MemoryType, ...]:
    """At most three distinct recallable types; unknown names are dropped."""
    known = {kind.value: kind for kind in WANTED_TYPES}
    found = (known.get(str(name).strip().lower()) for name in names)
    return tuple(dict.fromkeys(kind for kind in found if kind))[:MAX_WANTED_TYPES]


async def _structured(model: MemoryModel, user: str) -> CondenseResult | None:
    from muniment.replies import CondenseRequest  # the only need of pydantic in a turn

    if not hasattr(model, "generate_structured"):
        return None
    try:
        reply = await model.generate_structured(
            schema=CondenseRequest, system=prompt.SYSTEM + prompt.STRUCTURED, user=user
        )
    except _NOT_STRUCTURED:
        return None
    return CondenseResult(str(reply.query), wanted_types(reply.wanted_types))


async def _plain(model: MemoryModel, user: str) -> str:
    reply = await model.generate_text(system=prompt.SYSTEM + prompt.PLAIN, user=user)
    return without_thinking(reply)


def _unquoted(text: str) -> str:
    while len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text
