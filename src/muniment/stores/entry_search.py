"""What a search by realm asks for, checked, and how its answer is cut to a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from muniment.domain import checks
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError
from muniment.evidence.corpus import Corpus
from muniment.evidence.eligibility import Filters
from muniment.evidence.query import Question, analyze
from muniment.evidence.score import Scored, score
from muniment.evidence.weights import Ranking
from muniment.lexical.words import plain_words
from muniment.stores.entries import SearchHit, entry_of, entry_trust
from muniment.stores.limits import MAX_RESULTS

MAX_QUERY_BYTES = 1_000
MAX_QUERY_WORDS = 32
MOST_RANKED = 1_000
"""Rows that are tried for a place within `max_tokens`, at most."""

_LARGEST = 1 << 53
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class EntrySearch:
    """One search by realm: at most `k` hits of these kinds and at least this trust's rank."""

    text: str
    question: Question
    k: int
    kinds: frozenset[str]
    trust: int
    superseded: bool
    expired: bool
    max_tokens: int | None

    @property
    def hopeless(self) -> bool:
        """Nothing can be found: no word is asked for, no kind wanted, or no room left."""
        return not (self.question.terms and self.kinds and self.max_tokens != 0)

    @property
    def limit(self) -> int:
        """How many rows to rank."""
        return self.k if self.max_tokens is None else MOST_RANKED

    def filters(self, now: int) -> Filters:
        """Which rows may be found; `now` in microseconds since 1970."""
        moment = now / _MICROS
        return Filters(
            # Every row outlives the beginning of time; validity is asked as of `now` then.
            now=float("-inf") if self.expired else moment,
            as_of=moment,
            include_invalid=self.superseded,
            kinds=self.kinds,
            min_trust=self.trust,
        )

    def scored(
        self,
        corpora: Sequence[Corpus],
        now: int,
        *,
        embedding: Sequence[float] | None,
        weights: Ranking,
    ) -> list[Scored]:
        """The rows found, best first; `embedding` is the query's."""
        return score(
            corpora,
            self.question,
            self.filters(now),
            embedding=embedding,
            limit=self.limit,
            weights=weights,
        )


def entry_search(
    query: str,
    *,
    k: int,
    kinds: Sequence[MemoryType | str] | None,
    min_trust: Trust | str | None,
    include_superseded: bool,
    include_expired: bool,
    max_tokens: int | None,
    most: int = MAX_RESULTS,
) -> EntrySearch:
    """The search that was asked for; InvalidEntryError names the argument that does not fit.

    `k` is cut to `most`; words past the 32nd are ignored.
    """
    try:
        if max_tokens is not None:
            checks.whole("max_tokens", max_tokens, low=0, high=_LARGEST)
        count = min(checks.whole("k", k, low=1, high=_LARGEST), most)
    except ValueError as error:
        raise InvalidEntryError(str(error)) from None
    text = _words(query)
    return EntrySearch(
        text=text,
        question=analyze(text),
        k=count,
        kinds=frozenset(MemoryType) if kinds is None else _kinds(kinds),
        trust=0 if min_trust is None else entry_trust(min_trust, name="min_trust").rank,
        superseded=bool(include_superseded),
        expired=bool(include_expired),
        max_tokens=max_tokens,
    )


def within(
    ranked: Iterable[tuple[Memory, float]],
    search: EntrySearch,
    estimate: Callable[[str], int],
) -> list[SearchHit]:
    """The first `k` in rank order that fit the budget; one that does not is passed over."""
    hits: list[SearchHit] = []
    left = search.max_tokens
    for memory, relevance in ranked:
        if left is not None:
            cost = estimate(memory.content)
            if cost > left:
                continue
            left -= cost
        hits.append(SearchHit(entry_of(memory), relevance))
        if len(hits) == search.k or left == 0:
            break
    return hits


def _words(query: object) -> str:
    if not isinstance(query, str):
        raise InvalidEntryError("query: must be text")
    if len(query.encode("utf-8", "surrogatepass")) > MAX_QUERY_BYTES:
        raise InvalidEntryError(f"query: must have at most {MAX_QUERY_BYTES} bytes")
    words = plain_words(query)
    return query if len(words) <= MAX_QUERY_WORDS else " ".join(words[:MAX_QUERY_WORDS])


def _kinds(kinds: Sequence[MemoryType | str]) -> frozenset[str]:
    if isinstance(kinds, str):
        raise InvalidEntryError("kinds: must be a sequence of kinds")
    try:
        return frozenset(MemoryType(str(kind)).value for kind in kinds)
    except ValueError:
        allowed = ", ".join(kind.value for kind in MemoryType)
        raise InvalidEntryError(f"kinds: must be among {allowed}") from None
