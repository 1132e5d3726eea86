"""Choosing the long-term memories that are worth their prompt tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, overload

from muniment.context.candidates import CANDIDATES, Candidates, Embedding, Wanted
from muniment.context.guarded import TurnGuard
from muniment.context.policy import MemoryPolicy
from muniment.context.ranking import (
    EntityAnchor,
    ScoredMemory,
    ScoringContext,
    TypeAffinity,
    distinct,
    fused_score,
    rank_factors,
    rank_place,
    reach_of,
    select,
)
from muniment.context.tokens import TokenCounter, approximate_tokens
from muniment.domain import checks
from muniment.domain.clock import Clock, clock_of
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, can_address
from muniment.domain.trust import Trust
from muniment.ports import (
    Candidate,
    MemoryEmbedder,
    MemoryIndex,
    MemoryRepository,
    ServedSearches,
)

POLICY_BUDGET = -1
"""`max_tokens` of a recall that keeps to the policy's block budget."""

_MOST_CHARACTERS = 20_000
_SPARE = 3  # candidates beyond top_k that may say what another says


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A recalled memory with its rank explained.

    `score` is `relevance` (0..1) times (1 + factor) for each of `factors` (recency, importance,
    entity, type); `lanes` holds the parts of the relevance by name.
    """

    memory: Memory
    score: float
    relevance: float
    factors: Mapping[str, float]
    lanes: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """One recall; None means the policy's own."""

    owner: MemoryOwner
    query: str
    anchor_entity_ids: tuple[str, ...] = ()
    wanted_types: tuple[MemoryType, ...] = ()
    as_of: datetime | None = None
    top_k: int | None = None
    min_trust: Trust | None = None
    max_tokens: int | None = POLICY_BUDGET
    exclude_message_ids: tuple[str, ...] = ()


class MemoryRecall:
    """Recall over a repository, an index and an embedder; each failure only narrows it."""

    def __init__(
        self,
        *,
        policy: MemoryPolicy,
        memories: MemoryRepository,
        index: MemoryIndex | None = None,
        embedder: MemoryEmbedder | None = None,
        clock: Clock | None = None,
        token_counter: TokenCounter | None = None,
    ) -> None:
        self._policy = policy
        self._candidates = Candidates(memories, index)
        self._served = memories if isinstance(memories, ServedSearches) else None
        self._embedder = embedder
        self._clock = clock_of(clock)
        self._counter = token_counter or approximate_tokens

    @overload
    async def recall(
        self,
        owner: MemoryOwner,
        query: str,
        *,
        anchor_entity_ids: Sequence[str] = (),
        wanted_types: Sequence[MemoryType] = (),
        as_of: datetime | None = None,
        top_k: int | None = None,
        min_trust: Trust | None = None,
        max_tokens: int | None = POLICY_BUDGET,
        explain: Literal[False] = False,
    ) -> tuple[Memory, ...]: ...

    @overload
    async def recall(
        self,
        owner: MemoryOwner,
        query: str,
        *,
        anchor_entity_ids: Sequence[str] = (),
        wanted_types: Sequence[MemoryType] = (),
        as_of: datetime | None = None,
        top_k: int | None = None,
        min_trust: Trust | None = None,
        max_tokens: int | None = POLICY_BUDGET,
        explain: Literal[True],
    ) -> tuple[RecalledMemory, ...]: ...

    async def recall(
        self,
        owner: MemoryOwner,
        query: str,
        *,
        anchor_entity_ids: Sequence[str] = (),
        wanted_types: Sequence[MemoryType] = (),
        as_of: datetime | None = None,
        top_k: int | None = None,
        min_trust: Trust | None = None,
        max_tokens: int | None = POLICY_BUDGET,
        explain: bool = False,
    ) -> tuple[Memory, ...] | tuple[RecalledMemory, ...]:
        """The best memories for `query`, best first; `explain` gives each with its rank.

        The owner is built from the authenticated request, never from fields that a user or a
        model supplies; a scope that it cannot address is passed over, so that without a user it
        is answered from what the whole tenant may see. `as_of` asks what was believed then,
        `max_tokens=None` drops the block budget. ValueError for a bad argument; nothing else is
        raised.
        """
        request = RecallRequest(
            checks.of_type("owner", owner, MemoryOwner),
            checks.of_type("query", query, str),
            tuple(anchor_entity_ids),
            tuple(MemoryType(kind) for kind in wanted_types),
            checks.optional_instant("as_of", as_of),
            None if top_k is None else checks.whole("top_k", top_k, low=0, high=1000),
            None if min_trust is None else Trust(min_trust),
            _budget(max_tokens),
        )
        found = await self.find(request, TurnGuard(self._policy, session_id=owner.session_id))
        if not explain:
            return tuple(each.memory for each in found)
        return tuple(replace(each, lanes=dict(each.lanes)) for each in found)

    async def find(self, request: RecallRequest, guard: TurnGuard) -> tuple[RecalledMemory, ...]:
        """`recall` within a turn's remaining time."""
        top_k = self._policy.recall_top_k if request.top_k is None else request.top_k
        text = _askable(request.query)
        if not self._policy.enabled or top_k == 0 or not text:
            return ()
        scoring = self._scoring(request)
        reach = reach_of(scoring, top_k + _SPARE)
        wanted = await self._wanted(request, text, top_k, guard)
        near = await self._candidates.gather(replace(wanted, reach=reach), guard)
        chosen, looked_at = self._chosen(near, scoring, request, top_k)
        if looked_at >= reach.rows:  # what was out of reach may come next
            every = await self._candidates.gather(wanted, guard)
            chosen, _ = self._chosen(every, scoring, request, top_k)
        if self._served is not None:
            given = [each.memory for each in chosen]
            self._served.note_served(request.owner.tenant_id, given)
        return tuple(_explained(each, scoring) for each in chosen)

    def _chosen(
        self,
        found: Iterable[Candidate],
        scoring: ScoringContext,
        request: RecallRequest,
        top_k: int,
    ) -> tuple[tuple[ScoredMemory, ...], int]:
        """What is recalled of `found`, and how many were looked at for it."""
        looked_at = 0

        def each() -> Iterator[ScoredMemory]:
            nonlocal looked_at
            for looked_at, one in enumerate(_ranked(found, scoring), 1):  # noqa: B007
                yield one

        budget = request.max_tokens
        chosen = select(
            distinct(each()),
            top_k=top_k,
            max_tokens=self._policy.block_tokens if budget == POLICY_BUDGET else budget,
            counter=self._counter,
            overflow=self._policy.block_overflow,
        )
        return chosen, looked_at

    def _scoring(self, request: RecallRequest) -> ScoringContext:
        return ScoringContext(
            now=request.as_of or self._clock(),
            half_life_hours=self._policy.recency_half_life_hours,
            anchor=EntityAnchor(request.anchor_entity_ids, self._policy.entity_overlap_weight),
            affinity=TypeAffinity(request.wanted_types, self._policy.type_affinity_weight),
        )

    async def _wanted(
        self, request: RecallRequest, text: str, top_k: int, guard: TurnGuard
    ) -> Wanted:
        owner = request.owner
        scopes = self._policy.recall_scopes
        return Wanted(
            owner=owner,
            text=text,
            scopes=tuple(scope for scope in scopes if can_address(owner, scope)),
            embedding=await self._embedded(text, guard),
            messages=self._policy.recall_messages,
            exclude_message_ids=request.exclude_message_ids,
            as_of=request.as_of,
            now=self._clock(),
            min_trust=request.min_trust or self._policy.min_trust,
            limit=max(CANDIDATES, top_k),
        )

    async def _embedded(self, text: str, guard: TurnGuard) -> Embedding | None:
        embedder = self._embedder
        if embedder is None:
            return None

        async def call() -> Embedding:
            vector = tuple(map(float, await embedder(text)))
            if not vector or not all(map(math.isfinite, vector)):
                raise ValueError("the embedding is empty or not finite")
            return vector

        return await guard.run("embed query", call, None)


def _budget(max_tokens: int | None) -> int | None:
    if max_tokens is None or max_tokens == POLICY_BUDGET:
        return max_tokens
    return checks.whole("max_tokens", max_tokens, low=1, high=2**31)


def _askable(query: str) -> str:
    """`query` shortened and as encodable text; empty where nothing is asked."""
    text = query[:_MOST_CHARACTERS].replace("\x00", " ")
    return text.encode("utf-8", "replace").decode("utf-8").strip()


def _ranked(found: Iterable[Candidate], scoring: ScoringContext) -> Iterator[ScoredMemory]:
    """Like `rank`, each made when its turn comes: few of a hundred are looked at."""
    scored = [
        (fused_score(each.memory, relevance=each.relevance, context=scoring), each)
        for each in found
    ]
    scored.sort(key=lambda one: rank_place(one[0], one[1].memory))
    for score, each in scored:
        yield ScoredMemory(each.memory, each.relevance, score, each.lanes)


def _explained(each: ScoredMemory, scoring: ScoringContext) -> RecalledMemory:
    factors = rank_factors(each.memory, scoring)
    return RecalledMemory(each.memory, each.score, each.relevance, factors, each.lanes)
