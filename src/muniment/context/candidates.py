"""Where recall's candidates come from: one round trip, an index, or searches by term."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from muniment.context.guarded import TurnGuard
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, scope_query_owner
from muniment.domain.query import MemoryMatch, MemoryQuery, Reach
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import visible_to
from muniment.ports import (
    Candidate,
    MemoryCandidates,
    MemoryIndex,
    MemoryRepository,
    ReachableCandidates,
)

RECALLED_TYPES = (
    MemoryType.FACT,
    MemoryType.PREFERENCE,
    MemoryType.DECISION,
    MemoryType.EPISODE,
)
CANDIDATES = 100
LEAST_RELEVANCE = 0.01
_MOST_TERMS = 8
_MOST_QUERY_BYTES = 1_000

Embedding = Sequence[float]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One recall's question, narrowed to the scopes that its owner can address."""

    owner: MemoryOwner
    text: str
    scopes: tuple[MemoryScope, ...]
    embedding: Embedding | None
    messages: str
    exclude_message_ids: tuple[str, ...]
    as_of: datetime | None
    now: datetime
    min_trust: Trust
    limit: int
    reach: Reach | None = None


class Candidates:
    """Candidates from what the repository and the index can do. Failures leave their part out."""

    def __init__(self, memories: MemoryRepository, index: MemoryIndex | None) -> None:
        # Asked once: such a question of a protocol costs as much as a short read.
        self._one_trip = memories if isinstance(memories, MemoryCandidates) else None
        self._takes_reach = isinstance(memories, ReachableCandidates)
        self._memories = memories
        self._index = index
        self._separate = index is not None and id(index) != id(memories)

    async def gather(self, wanted: Wanted, guard: TurnGuard) -> list[Candidate]:
        """Every candidate found, each memory of a scope once."""
        one_trip = self._one_trip
        if one_trip is None:
            found = self._indexed if self._separate else self._lexical
            return await found(wanted, guard)
        if not self._takes_reach:
            wanted = replace(wanted, reach=None)
        if not self._separate:
            return await _found(one_trip, wanted, RECALLED_TYPES, guard)
        if wanted.messages == "off":
            return await self._indexed(wanted, guard)
        # The separate index knows the memories; the messages are the repository's own.
        said = await _found(one_trip, wanted, (MemoryType.CONVERSATION,), guard)
        return [*said, *await self._indexed(wanted, guard)]

    async def _indexed(self, wanted: Wanted, guard: TurnGuard) -> list[Candidate]:
        found = await asyncio.gather(
            *(self._indexed_scope(wanted, scope, guard) for scope in wanted.scopes)
        )
        if any(part is None for part in found):
            return await self._lexical(wanted, guard)
        return _scaled([pair for part in found if part for pair in part])

    async def _indexed_scope(
        self, wanted: Wanted, scope: MemoryScope, guard: TurnGuard
    ) -> list[tuple[Memory, float]] | None:
        index, query = self._index, _scope_query(wanted, scope, _shortened(wanted.text))
        if index is None or query is None:
            return []
        matches = await guard.run(
            "search index", lambda: index.search_memories(query, wanted.embedding), None
        )
        if matches is None:
            return None
        scores = _best_scores(matches)
        hydrated = await guard.run(
            "hydrate index hits", lambda: self._hydrated(query.owner, list(scores)), ()
        )
        found = {m.memory_id: m for m in hydrated if _eligible(m, scope, wanted)}
        return [(found[key], score) for key, score in scores.items() if key in found]

    async def _hydrated(self, owner: MemoryOwner, ids: Sequence[str]) -> list[Memory]:
        found = await asyncio.gather(*(self._memories.get(owner, each) for each in ids))
        return [memory for memory in found if memory is not None]

    async def _lexical(self, wanted: Wanted, guard: TurnGuard) -> list[Candidate]:
        terms = significant_terms(wanted.text)
        pairs = [(scope, term) for scope in wanted.scopes for term in terms]
        found = await asyncio.gather(
            *(self._search(wanted, scope, term, guard) for scope, term in pairs)
        )
        matched: dict[tuple[MemoryScope, str], tuple[Memory, int]] = {}
        for memory in (memory for part in found for memory in part):
            key = (memory.scope, memory.memory_id)
            matched[key] = (memory, matched[key][1] + 1 if key in matched else 1)
        return _scaled([(memory, count / len(terms)) for memory, count in matched.values()])

    async def _search(
        self, wanted: Wanted, scope: MemoryScope, term: str, guard: TurnGuard
    ) -> list[Memory]:
        query = _scope_query(wanted, scope, term)
        if query is None:
            return []
        found = await guard.run("search memories", lambda: self._memories.search(query), ())
        return [memory for memory in found if _eligible(memory, scope, wanted)]


def significant_terms(text: str) -> list[str]:
    """The distinct telling words of `text`, at most eight; all its words where none is telling."""
    from muniment.lexical.stopwords import is_stop_word
    from muniment.lexical.words import plain_words

    found = list(dict.fromkeys(plain_words(text)))
    return ([word for word in found if not is_stop_word(word)] or found)[:_MOST_TERMS]


async def _found(
    memories: MemoryCandidates, wanted: Wanted, types: tuple[MemoryType, ...], guard: TurnGuard
) -> list[Candidate]:
    bounded = {} if wanted.reach is None else {"reach": wanted.reach}
    found = await guard.run(
        "recall candidates",
        lambda: memories.candidates(
            wanted.owner,
            wanted.text,
            embedding=wanted.embedding,
            scopes=wanted.scopes,
            memory_types=types,
            messages=wanted.messages,
            session_id=wanted.owner.session_id,
            exclude_message_ids=wanted.exclude_message_ids,
            as_of=wanted.as_of,
            min_trust=wanted.min_trust,
            limit=wanted.limit,
            **bounded,
        ),
        (),
    )
    return list(found)


def _scope_query(wanted: Wanted, scope: MemoryScope, text: str) -> MemoryQuery | None:
    owner = scope_query_owner(wanted.owner, scope)
    if owner is None or not text.strip():
        return None
    return MemoryQuery(
        owner,
        scopes=(scope,),
        memory_types=RECALLED_TYPES,
        text=text,
        limit=min(wanted.limit, 1000),
        as_of=wanted.as_of,
        min_trust=wanted.min_trust,
    )


def _eligible(memory: Memory, scope: MemoryScope, wanted: Wanted) -> bool:
    """A foreign index or repository is not believed: every rule is applied again."""
    return (
        memory.scope is scope
        and visible_to(scope, memory.owner, wanted.owner)
        and memory.memory_type in RECALLED_TYPES
        and memory.is_valid_at(wanted.as_of or wanted.now)
        and not memory.is_expired_at(wanted.now)
        and memory.trust >= wanted.min_trust
    )


def _best_scores(matches: Iterable[MemoryMatch]) -> Mapping[str, float]:
    scores: dict[str, float] = {}
    for match in matches:
        scores[match.memory_id] = max(match.score, scores.get(match.memory_id, match.score))
    return scores


def _scaled(found: Sequence[tuple[Memory, float]]) -> list[Candidate]:
    """Scores as relevance in (0, 1]; only those of an unbounded index are scaled down."""
    top = max((score for _, score in found), default=1.0)
    return [
        Candidate(memory, max(LEAST_RELEVANCE, score / max(1.0, top)), {"index": score})
        for memory, score in found
    ]


def _shortened(text: str) -> str:
    """A query is shortened, never refused."""
    return text.encode()[:_MOST_QUERY_BYTES].decode("utf-8", "ignore")
