"""What one turn gets from memory, built in order and never failing the turn."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.context.chat_model import memory_model
from muniment.context.condense import condense
from muniment.context.folding import Refreshed
from muniment.context.guarded import TurnGuard
from muniment.context.policy import MemoryPolicy
from muniment.context.recall import MemoryRecall, RecallRequest
from muniment.context.result import CondenseResult, MemoryContext
from muniment.context.summary import SummaryKeeper, after_frontier, frontier_of
from muniment.context.tokens import TokenCounter, approximate_tokens
from muniment.context.window import Messages, trim_window
from muniment.domain import checks
from muniment.domain.clock import Clock, clock_of
from muniment.domain.conversation import ConversationIdentity, conversation_identity
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.ports import (
    ConversationMessageStore,
    MemoryEmbedder,
    MemoryIndex,
    MemoryRepository,
)


class MemoryContextBuilder:
    """Builds a turn's window, summary, standalone query and recalled memories.

    `model` may be a MemoryModel or a LangChain chat model; every part but the policy and the
    message store may be missing. `token_counter` counts every budget.
    """

    def __init__(
        self,
        *,
        policy: MemoryPolicy,
        messages: ConversationMessageStore,
        memories: MemoryRepository | None = None,
        model: object | None = None,
        index: MemoryIndex | None = None,
        embedder: MemoryEmbedder | None = None,
        token_counter: TokenCounter | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._policy = policy
        self._messages = messages
        self._model = memory_model(model)
        self._counter = token_counter or approximate_tokens
        self._clock = clock_of(clock)
        self._summaries: SummaryKeeper | None = None
        self._recall: MemoryRecall | None = None
        if memories is not None:
            self._summaries = SummaryKeeper(
                policy=policy,
                messages=messages,
                memories=memories,
                model=self._model,
                counter=self._counter,
            )
            self._recall = MemoryRecall(
                policy=policy,
                memories=memories,
                index=index,
                embedder=embedder,
                clock=self._clock,
                token_counter=self._counter,
            )

    async def build(
        self, owner: MemoryOwner, question: str, *, anchor_entity_ids: Sequence[str] = ()
    ) -> MemoryContext:
        """The memory of the turn that `question` opens; it must not be persisted yet.

        The owner is built from the authenticated request, never from fields that a user or a
        model supplies. MemoryScopeError without principal and session, ValueError for an owner or
        a question of another type; nothing else is raised: what fails or takes too long is a
        WARNING, and the turn goes on with what is left.
        """
        identity = conversation_identity(owner, subject="a turn")
        checks.of_type("question", question, str)
        guard = TurnGuard(self._policy, session_id=identity.session_id)
        loaded = await self._load(identity, guard)
        if not self._policy.enabled:
            return MemoryContext(self._trimmed(loaded), None, (), question)
        refreshed = await self._summarized(owner, loaded, guard)
        summary = refreshed.summary
        window = self._trimmed(after_frontier(loaded, frontier_of(summary)))
        condensed = await self._condensed(question, summary, window, guard)
        request = RecallRequest(
            owner,
            condensed.query,
            anchor_entity_ids=tuple(anchor_entity_ids),
            wanted_types=condensed.wanted_types,
            exclude_message_ids=tuple(message.message_id for message in window),
        )
        return MemoryContext(
            messages=window,
            summary=summary.content if summary else None,
            recalled=await self._recalled(request, guard),
            standalone_query=condensed.query,
            rewritten=condensed.query != question,
            summary_written=refreshed.written,
            anchor_entity_ids=request.anchor_entity_ids,
            wanted_types=condensed.wanted_types,
        )

    async def _load(self, identity: ConversationIdentity, guard: TurnGuard) -> Messages:
        limit = self._policy.recent_max_messages
        found = await guard.run(
            "load messages", lambda: self._messages.recent_messages(identity, limit=limit), ()
        )
        return tuple(found)[-limit:]

    def _trimmed(self, messages: Messages) -> Messages:
        return trim_window(
            messages, max_tokens=self._policy.recent_max_tokens, counter=self._counter
        )

    async def _summarized(
        self, owner: MemoryOwner, loaded: Messages, guard: TurnGuard
    ) -> Refreshed:
        if self._summaries is None:
            return Refreshed(None)
        summary = await self._summaries.load(owner, guard)
        return await self._summaries.refresh(owner, summary, loaded, now=self._clock(), guard=guard)

    async def _condensed(
        self, question: str, summary: Memory | None, window: Messages, guard: TurnGuard
    ) -> CondenseResult:
        model, unchanged = self._model, CondenseResult(question)
        said = summary is not None or bool(window)
        if model is None or not self._policy.query_rewrite or not said or not question.strip():
            return unchanged
        text = summary.content if summary else ""
        return await guard.run(
            "condense question",
            lambda: condense(model, question, summary=text, window=window, counter=self._counter),
            unchanged,
        )

    async def _recalled(self, request: RecallRequest, guard: TurnGuard) -> tuple[Memory, ...]:
        if self._recall is None:
            return ()
        found = await self._recall.find(request, guard)
        return tuple(recalled.memory for recalled in found)
