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
from muniment.context.summary import (
    SummaryKeeper,
    after_frontier,
    frontier_of,
    newest,
    summary_query,
)
from muniment.context.tokens import TokenCounter, approximate_tokens
from muniment.context.window import Messages, trim_window
from muniment.domain import checks
from muniment.domain.clock import Clock, clock_of
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    conversation_identity,
)
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.ports import (
    ConversationMessageStore,
    MemoryEmbedder,
    MemoryIndex,
    MemoryRepository,
    TurnOpenings,
)

_TOGETHER = "load messages and summary"

Opening = tuple[Sequence[ConversationMessage], Sequence[Memory]]


class MemoryContextBuilder:
    """Builds a turn's window, summary, standalone query and recalled memories.

    `model` may be a MemoryModel or a LangChain chat model; every part but the policy and the
    message store may be missing. `token_counter` counts every budget. `openings` is the store
    that `messages` and `memories` are the faces of, where it can read both at once.
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
        openings: TurnOpenings | None = None,
    ) -> None:
        self._policy = policy
        self._messages = messages
        self._openings = None if memories is None else openings
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
        if not self._policy.enabled:
            alone = await self._load(identity, guard)
            return MemoryContext(self._trimmed(alone), None, (), question)
        loaded, held = await self._opened(owner, identity, guard)
        refreshed = await self._refreshed(owner, held, loaded, guard)
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

    async def _opened(
        self, owner: MemoryOwner, identity: ConversationIdentity, guard: TurnGuard
    ) -> tuple[Messages, Memory | None]:
        """The newest messages and the summary: read together where that can be done."""
        if self._openings is not None:
            both = await self._together(self._openings, owner, identity, guard)
            if both is not None:
                return self._newest(both[0]), newest(both[1])
        loaded = await self._load(identity, guard)
        if self._summaries is None:
            return loaded, None
        return loaded, await self._summaries.load(owner, guard)

    async def _together(
        self,
        openings: TurnOpenings,
        owner: MemoryOwner,
        identity: ConversationIdentity,
        guard: TurnGuard,
    ) -> Opening | None:
        """Both, none of either where there is no time for them; None where one of them fails."""

        async def call() -> Opening | None:
            limit = self._policy.recent_max_messages
            try:
                return await openings.opening(identity, summary_query(owner), limit=limit)
            except Exception as error:
                guard.warn(_TOGETHER, "failed", type(error).__name__)
                return None  # each by itself tells which of them it is, and loses no other

        nothing: Opening = ((), ())
        return await guard.run(_TOGETHER, call, nothing)

    async def _load(self, identity: ConversationIdentity, guard: TurnGuard) -> Messages:
        limit = self._policy.recent_max_messages
        return self._newest(
            await guard.run(
                "load messages", lambda: self._messages.recent_messages(identity, limit=limit), ()
            )
        )

    def _newest(self, found: Sequence[ConversationMessage]) -> Messages:
        return tuple(found)[-self._policy.recent_max_messages :]

    def _trimmed(self, messages: Messages) -> Messages:
        return trim_window(
            messages, max_tokens=self._policy.recent_max_tokens, counter=self._counter
        )

    async def _refreshed(
        self, owner: MemoryOwner, summary: Memory | None, loaded: Messages, guard: TurnGuard
    ) -> Refreshed:
        if self._summaries is None:
            return Refreshed(None)
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
