"""Extraction: from a finished turn to the facts that are stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from muniment.context.candidates import Candidates
from muniment.context.chat_model import memory_model
from muniment.context.guarded import TurnGuard
from muniment.context.policy import MemoryPolicy
from muniment.domain.clock import Clock, clock_of
from muniment.domain.conversation import ConversationMessage
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, scope_query_owner
from muniment.domain.scope import MemoryScope
from muniment.extraction.counts import ExtractionCounts
from muniment.extraction.dedup import Restatements
from muniment.extraction.entities import confident_ids, mentions_of
from muniment.extraction.existing import Shown, nearest
from muniment.extraction.facts import Turn
from muniment.extraction.intake import FactIntake
from muniment.extraction.plain_json import ReadFacts
from muniment.extraction.proposing import propose
from muniment.extraction.storing import FactWriter
from muniment.extraction.transcript import spoken_messages, topic
from muniment.ports import (
    MemoryEmbedder,
    MemoryEntityResolver,
    MemoryIndex,
    MemoryModel,
    MemoryRepository,
)
from muniment.replies import ExtractedFact

MAX_FACTS = 50
_log = logging.getLogger(__name__)


class MemoryExtractor:
    """Stores the durable facts of finished turns. `counts` are the figures of all calls so far.

    Each fact is a new row of trust `model`, valid from now, with its sources. Without a model, or
    with a policy that switches memory or extraction off, nothing is read and nothing stored.
    """

    def __init__(
        self,
        *,
        policy: MemoryPolicy,
        memories: MemoryRepository,
        model: MemoryModel | None,
        index: MemoryIndex | None = None,
        embedder: MemoryEmbedder | None = None,
        entities: MemoryEntityResolver | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._policy = policy
        self._memories = memories
        self._model = memory_model(model)
        self._candidates = Candidates(memories, index)
        self._restatements = Restatements(policy, memories, index=index, embedder=embedder)
        self._writer = FactWriter(
            memories, index=index, timeout_seconds=policy.call_timeout_seconds
        )
        self._entities = entities
        self._clock = clock_of(clock)
        self.counts = ExtractionCounts()

    async def extract(
        self, owner: MemoryOwner, *, messages: Sequence[ConversationMessage]
    ) -> tuple[Memory, ...]:
        """The memories stored from `messages`; never raises, cancellation excepted.

        After a failure, what was stored before it. The owner must be built from the authenticated
        request, never from fields that a user or a model supplies.
        """
        stored: list[Memory] = []
        counts = ExtractionCounts()
        session = getattr(owner, "session_id", None)
        try:
            await self._extract(owner, messages, stored, counts)
        except Exception as error:
            failed = {"error": type(error).__name__, "session_id": session}
            _log.warning("extraction stopped", extra=failed)
        self.counts.add(counts)
        level = logging.WARNING if counts.suspicious else logging.INFO
        _log.log(level, "extraction finished", extra={**counts.fields(), "session_id": session})
        return tuple(stored)

    async def _extract(
        self,
        owner: MemoryOwner,
        messages: Sequence[ConversationMessage],
        stored: list[Memory],
        counts: ExtractionCounts,
    ) -> None:
        policy, model = self._policy, self._model
        if model is None or not (policy.enabled and policy.extraction_enabled):
            return
        spoken = spoken_messages(messages)
        if not spoken or scope_query_owner(owner, MemoryScope.SESSION) is None:
            return
        turn = Turn.of(owner, spoken, self._clock())
        shown = Shown.of(await self._known(turn, topic(spoken)))
        read = await propose(
            model, spoken, shown, now=turn.now, timeout_seconds=policy.call_timeout_seconds
        )
        counts.malformed += read.malformed
        await self._take(turn, shown, read, stored, counts)

    async def _take(
        self,
        turn: Turn,
        shown: Shown,
        read: ReadFacts,
        stored: list[Memory],
        counts: ExtractionCounts,
    ) -> None:
        intake = FactIntake(
            policy=self._policy,
            memories=self._memories,
            restatements=self._restatements,
            writer=self._writer,
            turn=turn,
            shown=shown,
            counts=counts,
        )
        counts.dropped_excess += max(0, len(read.facts) - MAX_FACTS)
        for fact in read.facts[:MAX_FACTS]:
            memory = await intake.take(fact, await self._entity_ids(turn.owner, fact))
            if memory is not None:
                stored.append(memory)

    async def _known(self, turn: Turn, text: str) -> tuple[Memory, ...]:
        embedding = await self._restatements.embedding(text)
        return await nearest(
            turn.owner,
            text,
            candidates=self._candidates,
            embedding=embedding,
            now=turn.now,
            guard=self._guard(turn.owner),
        )

    async def _entity_ids(self, owner: MemoryOwner, fact: ExtractedFact) -> tuple[str, ...]:
        mentions = mentions_of(fact.entities)
        if self._entities is None or not mentions:
            return mentions
        ask = partial(self._entities.resolve_entities, mentions, tenant_id=owner.tenant_id)
        resolved = await self._guard(owner).run("resolve entities", ask, ())
        return confident_ids(mentions, resolved, floor=self._policy.entity_confidence_floor)

    def _guard(self, owner: MemoryOwner) -> TurnGuard:
        # One a call: extraction follows the turn, whose time is not what bounds it.
        return TurnGuard(self._policy, session_id=owner.session_id)
