"""The rolling summary of a conversation and its frontier, the last message that it covers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from muniment.context.folding import FRONTIER, Folding, Refreshed, summary_memory_id
from muniment.context.guarded import TurnGuard
from muniment.context.policy import MemoryPolicy
from muniment.context.tokens import TokenCounter
from muniment.context.window import Messages, window_tokens
from muniment.domain.conversation import ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.ports import ConversationMessageStore, MemoryModel, MemoryRepository

__all__ = ["SummaryKeeper", "after_frontier", "frontier_of", "summary_memory_id"]


def frontier_of(summary: Memory | None) -> str | None:
    """The id of the last message that `summary` covers, None where it covers none."""
    value = summary.metadata.get(FRONTIER) if summary else None
    return value if isinstance(value, str) and value else None


def after_frontier(messages: Sequence[ConversationMessage], frontier: str | None) -> Messages:
    """The messages that the summary does not cover; all of them where the frontier is older."""
    for place, message in enumerate(messages):
        if message.message_id == frontier:
            return tuple(messages[place + 1 :])
    return tuple(messages)


def summary_query(owner: MemoryOwner) -> MemoryQuery:
    """What finds the valid summaries of the owner's session."""
    return MemoryQuery(owner, scopes=(MemoryScope.SESSION,), memory_types=(MemoryType.SUMMARY,))


def newest(summaries: Sequence[Memory]) -> Memory | None:
    """The one that was changed last, None without one."""
    return max(summaries, key=lambda m: (m.updated_at, m.memory_id), default=None)


class SummaryKeeper:
    """Loads a session's summary, and refreshes it where the policy asks for it."""

    def __init__(
        self,
        *,
        policy: MemoryPolicy,
        messages: ConversationMessageStore,
        memories: MemoryRepository,
        model: MemoryModel | None,
        counter: TokenCounter,
    ) -> None:
        self._policy = policy
        self._messages = messages
        self._memories = memories
        self._model = model
        self._counter = counter

    async def load(self, owner: MemoryOwner, guard: TurnGuard) -> Memory | None:
        """The newest valid summary of the session; None where there is none or it fails."""
        query = summary_query(owner)
        return newest(await guard.run("load summary", lambda: self._memories.search(query), ()))

    async def refresh(
        self,
        owner: MemoryOwner,
        summary: Memory | None,
        loaded: Messages,
        *,
        now: datetime,
        guard: TurnGuard,
    ) -> Refreshed:
        """Fold what is older than the messages to keep into the summary, a page at a time.

        `loaded` is the newest history, oldest first. What was folded before a failure stays.
        """
        if self._model is None or not self._due(summary, loaded):
            return Refreshed(summary)
        folding = Folding(
            policy=self._policy,
            messages=self._messages,
            memories=self._memories,
            model=self._model,
            counter=self._counter,
            guard=guard,
            now=now,
        )
        return await folding.run(owner, summary, loaded)

    def _due(self, summary: Memory | None, loaded: Messages) -> bool:
        frontier = frontier_of(summary)
        limit = self._policy.summary_trigger_fraction * self._policy.recent_max_tokens
        if window_tokens(after_frontier(loaded, frontier), self._counter) > limit:
            return True
        # Messages between the frontier and the window would be in neither of them.
        return frontier is not None and all(m.message_id != frontier for m in loaded)
