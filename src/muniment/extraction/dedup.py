"""Is a proposed fact a restatement of one that is known?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import cast

from muniment.context.candidates import RECALLED_TYPES
from muniment.context.guarded import TurnGuard
from muniment.context.policy import MemoryPolicy
from muniment.domain.content import normalize_content
from muniment.domain.memory import Memory
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.ports import MemoryEmbedder, MemoryIndex, MemoryRepository

MAX_NEAREST = 20
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")
_NEGATION = re.compile(
    r"\b(?:not?|never|none|nobody|without|\w+n't|cannot|nicht|nie|kein\w*|ohne|pas|jamais|nunca)\b",
    re.IGNORECASE,
)


def echoed(content: str, scope: MemoryScope, known: Iterable[Memory]) -> Memory | None:
    """The memory in `known` that says `content` already, of the same or a wider scope.

    A recalled memory that comes back in the conversation is no new knowledge, even where the
    model proposes it for a narrower scope.
    """
    wanted = normalize_content(content)
    same = (
        row
        for row in known
        if row.scope.width >= scope.width and normalize_content(row.content) == wanted
    )
    return next(same, None)


class Restatements:
    """Looks for live memories that say nearly the same, by the similarity of embeddings.

    Without an embedder or an index nothing is found; a call that fails or takes too long is a
    WARNING and finds nothing.
    """

    def __init__(
        self,
        policy: MemoryPolicy,
        memories: MemoryRepository,
        *,
        index: MemoryIndex | None = None,
        embedder: MemoryEmbedder | None = None,
    ) -> None:
        self._policy = policy
        self._memories = memories
        self._index = index if index is not None else own_index(memories)
        self._embedder = embedder

    async def embedding(self, text: str) -> Sequence[float] | None:
        """The vector of `text`, or None."""
        embedder = self._embedder
        if embedder is None:
            return None

        async def call() -> Sequence[float]:
            vector = tuple(float(number) for number in await embedder(text))
            if not vector or not all(map(math.isfinite, vector)):
                raise ValueError("the embedding is empty or not finite")
            return vector

        return await TurnGuard(self._policy).run("embed", call, None)

    async def of(
        self,
        fact: Memory,
        embedding: Sequence[float] | None,
        *,
        now: datetime,
        passing_over: Iterable[Memory] = (),
    ) -> Memory | None:
        """The live memory of the fact's own scope whose similarity reaches the threshold."""
        index = self._index
        if index is None or embedding is None:
            return None
        skipped = frozenset(memory.memory_id for memory in passing_over)
        guard = TurnGuard(self._policy, session_id=fact.owner.session_id)
        search = partial(self._nearest, fact, embedding, index, now, skipped)
        return await guard.run("compare a fact", search, None)

    async def _nearest(
        self,
        fact: Memory,
        embedding: Sequence[float],
        index: MemoryIndex,
        now: datetime,
        skipped: frozenset[str],
    ) -> Memory | None:
        query = MemoryQuery(
            fact.owner, (fact.scope,), RECALLED_TYPES, text=fact.content, limit=MAX_NEAREST
        )
        for match in await index.search_memories(query, embedding):
            if match.score < self._policy.dedup_threshold or match.memory_id in skipped:
                continue
            row = await self._memories.get(fact.owner, match.memory_id)
            if row is None or not _comparable(row, fact, now):
                continue
            if not differs(row.content, fact.content):
                return row
        return None


def own_index(memories: MemoryRepository) -> MemoryIndex | None:
    """The repository itself where it also is an index over the same rows."""
    return cast(MemoryIndex, memories) if hasattr(memories, "search_memories") else None


def _comparable(row: Memory, fact: Memory, now: datetime) -> bool:
    """What an index is never believed about: scope, type, validity and expiry."""
    live = row.is_valid_at(now) and not row.is_expired_at(now)
    return live and row.scope is fact.scope and row.memory_type in RECALLED_TYPES


def differs(one: str, other: str) -> bool:
    """Whether numbers, negations or names tell apart what embeddings hold to be nearly the same.

    Long sentences that differ in a weekday alone reach a cosine of 0.99. A name is a capitalised
    word inside a sentence; names differ where each side has one that the other lacks.
    """
    numbers = sorted(_NUMBER.findall(one)) != sorted(_NUMBER.findall(other))
    negated = bool(_NEGATION.search(one)) != bool(_NEGATION.search(other))
    renamed = bool(_names(one, other)) and bool(_names(other, one))
    return numbers or negated or renamed


def _names(text: str, other: str) -> set[str]:
    """The names in `text` that `other` does not hold in any spelling of case."""
    words = _WORD.findall(text)[1:]
    held = set(_WORD.findall(other.casefold()))
    return {word for word in words if word[0].isupper() and word.casefold() not in held}
