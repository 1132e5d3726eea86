"""What one turn got from memory."""

from __future__ import annotations

from dataclasses import dataclass

from muniment.context.rendering import render_block, render_summary
from muniment.domain.conversation import ConversationMessage
from muniment.domain.memory import Memory, MemoryType


@dataclass(frozen=True, slots=True)
class CondenseResult:
    """A standalone query and at most three memory types that it seems to want."""

    query: str
    wanted_types: tuple[MemoryType, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """The history before this turn and what was recalled for its question.

    `messages` is the window, oldest first; `summary` the rolling summary of what is older;
    `recalled` best first; `rewritten` is True only where `standalone_query` differs from the
    question; `summary_written` where this turn stored a new summary.
    """

    messages: tuple[ConversationMessage, ...]
    summary: str | None
    recalled: tuple[Memory, ...]
    standalone_query: str
    rewritten: bool = False
    summary_written: bool = False
    anchor_entity_ids: tuple[str, ...] = ()
    wanted_types: tuple[MemoryType, ...] = ()

    def render(self) -> str:
        """The recalled memories for a prompt: a fenced block labelled as data, each line with
        its date and trust, nothing in it able to close the fence. Empty where none."""
        return render_block(self.recalled)

    def render_summary(self) -> str:
        """The summary for a prompt, fenced and labelled alike. Empty where there is none."""
        return render_summary(self.summary)


def recalled_entity_ids(context: MemoryContext) -> tuple[str, ...]:
    """The entities of what was recalled, each once, in recall order."""
    found = (entity for memory in context.recalled for entity in memory.entity_ids)
    return tuple(dict.fromkeys(found))
