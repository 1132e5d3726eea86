"""Ranking: relevance and the factors that may raise it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from muniment.context.rendering import block_of, render_line
from muniment.context.tokens import TokenCounter, approximate_tokens
from muniment.domain.content import normalize_content
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.query import Reach


@dataclass(frozen=True, slots=True)
class EntityAnchor:
    """Entities that the question is about, and how much sharing them may raise a score."""

    entity_ids: tuple[str, ...] = ()
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class TypeAffinity:
    """Memory types that the question seems to want, and how much being one may raise a score."""

    types: tuple[MemoryType, ...] = ()
    weight: float = 0.0


NO_ANCHOR = EntityAnchor()
NO_AFFINITY = TypeAffinity()


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """What scores are relative to: the instant, the half-life in hours, the question's hints."""

    now: datetime
    half_life_hours: float
    anchor: EntityAnchor = NO_ANCHOR
    affinity: TypeAffinity = NO_AFFINITY


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A memory, its relevance in (0, 1], its score, and the lanes that the relevance is from."""

    memory: Memory
    relevance: float
    score: float
    lanes: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)


def recency_weight(memory: Memory, *, now: datetime, half_life_hours: float) -> float:
    """0.5 ^ (hours since updated_at / half-life): 0..1, 1 for a clock ahead of ours."""
    hours = max(0.0, (now - memory.updated_at).total_seconds() / 3600)
    return float(0.5 ** (hours / half_life_hours))


def entity_weight(memory: Memory, anchor: EntityAnchor = NO_ANCHOR) -> float:
    """The anchor's weight times the share of the memory's own entities among the anchors."""
    if not (anchor.entity_ids and memory.entity_ids):
        return 0.0
    own = set(memory.entity_ids)
    return anchor.weight * len(own & set(anchor.entity_ids)) / max(1, len(own))


def type_weight(memory: Memory, affinity: TypeAffinity = NO_AFFINITY) -> float:
    """The affinity's weight where the memory's type is wanted, else 0."""
    return affinity.weight if memory.memory_type in affinity.types else 0.0


def rank_factors(memory: Memory, context: ScoringContext) -> dict[str, float]:
    """Each factor by name; a score is the relevance times (1 + factor) for all of them."""
    recency = recency_weight(memory, now=context.now, half_life_hours=context.half_life_hours)
    return {
        "recency": recency,
        "importance": memory.importance,
        "entity": entity_weight(memory, context.anchor),
        "type": type_weight(memory, context.affinity),
    }


def fused_score(memory: Memory, *, relevance: float, context: ScoringContext) -> float:
    """relevance x (1 + recency) x (1 + importance) x (1 + entity) x (1 + type)."""
    recency = recency_weight(memory, now=context.now, half_life_hours=context.half_life_hours)
    raised = (1 + recency) * (1 + memory.importance)
    raised *= 1 + entity_weight(memory, context.anchor)
    return relevance * (raised * (1 + type_weight(memory, context.affinity)))


def reach_of(context: ScoringContext, rows: int) -> Reach:
    """What can matter to one who looks at `rows` of these scores, best first."""
    entity = context.anchor.weight if context.anchor.entity_ids else 0.0
    affinity = context.affinity.weight if context.affinity.types else 0.0
    half_life = context.half_life_hours * 3600
    return Reach(rows, (1 + entity) * (1 + affinity), context.now.timestamp(), half_life)


def score_memory(memory: Memory, *, relevance: float, context: ScoringContext) -> ScoredMemory:
    """`memory` with its fused score."""
    score = fused_score(memory, relevance=relevance, context=context)
    return ScoredMemory(memory, relevance, score)


def rank(candidates: Iterable[ScoredMemory]) -> tuple[ScoredMemory, ...]:
    """Best first; ties go to the narrower scope, then the id."""
    return tuple(sorted(candidates, key=lambda each: rank_place(each.score, each.memory)))


def deduplicate(candidates: Iterable[ScoredMemory]) -> tuple[ScoredMemory, ...]:
    """In rank order, of those with the same normalized content the best alone."""
    return tuple(distinct(rank(candidates)))


def distinct(ranked: Iterable[ScoredMemory]) -> Iterator[ScoredMemory]:
    """Those whose normalized content none before them has, in the order given."""
    seen: set[str] = set()
    for candidate in ranked:
        content = normalize_content(candidate.memory.content)
        if content not in seen:
            seen.add(content)
            yield candidate


def select(
    candidates: Iterable[ScoredMemory],
    *,
    top_k: int,
    max_tokens: int | None,
    counter: TokenCounter = approximate_tokens,
    overflow: str = "stop",
) -> tuple[ScoredMemory, ...]:
    """At most `top_k` whose rendered block fits `max_tokens` (None: no budget).

    The cut is at the first that does not fit, so the block is a prefix of the ranking;
    with `overflow="skip"` such a memory is passed over instead.
    """
    chosen: list[ScoredMemory] = []
    lines: list[str] = []
    for candidate in candidates if top_k > 0 else ():
        line = "" if max_tokens is None else render_line(candidate.memory)
        if max_tokens is None or counter(block_of([*lines, line])) <= max_tokens:
            chosen.append(candidate)
            lines.append(line)
        elif overflow == "stop":
            break
        if len(chosen) == top_k:
            break
    return tuple(chosen)


def rank_place(score: float, memory: Memory) -> tuple[float, int, str]:
    """What a memory of this score is sorted by."""
    return (-score, memory.scope.width, memory.memory_id)
