"""Scoring a question against corpora: the one ranking of every store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import Corpus
from muniment.evidence.eligibility import Filters, Mask
from muniment.evidence.lanes import Candidates, Values, raw_lanes, scaled_lanes, spread
from muniment.evidence.lookup import Lookup, look_up
from muniment.evidence.query import Question
from muniment.evidence.vectors import Floats, unit
from muniment.evidence.weights import DEFAULT, LANES, Weights

MOST_CANDIDATES = 1_000
"""Rows whose evidence is weighed, at most: the best by words and the best by meaning."""

LEAST_RELEVANCE = 0.01
"""The weakest candidate's relevance, so that other factors can still raise it."""

_DIGITS = 9  # Scores that differ less are the same: sums differ in the last bits between machines.


@dataclass(frozen=True, slots=True)
class Scored:
    """A row found: ``corpus_index`` in the corpora passed, its ``key`` there.

    ``relevance`` lies in (0, 1], 1 for the best; ``lanes`` holds each lane's share by name (see
    :mod:`muniment.evidence.lanes`) and ``cosine``, the similarity itself, where there is one.
    """

    corpus_index: int
    key: int
    relevance: float
    lanes: dict[str, float]


def score(
    corpora: Sequence[Corpus],
    question: Question,
    *,
    embedding: Sequence[float] | None,
    now: float,
    as_of: float | None = None,
    include_invalid: bool = False,
    kinds: Collection[str] | None = None,
    session: str | None = None,
    exclude_keys: Collection[int] = (),
    min_trust: int = 0,
    limit: int = 100,
    weights: Weights = DEFAULT,
) -> list[Scored]:
    """At most ``limit`` rows, best first; equals by corpus, then newest, then key.

    A row that shares no word with the question and has no embedding to compare is not found.
    ``session`` and ``exclude_keys`` concern messages only. Never raises for a question's content.
    """
    filters = Filters(now, as_of, include_invalid, kinds, session, exclude_keys, min_trust)
    lookups, idf = look_up(corpora, question)
    asked = None if embedding is None else unit(embedding)
    chosen = [
        _choose(corpus, lookup, filters.mask(corpus), asked)
        for corpus, lookup in zip(corpora, lookups, strict=True)
    ]
    lanes = _all_lanes(chosen, idf, question)
    if not lanes or not len(lanes["words"]):
        return []
    total = _weighed(scaled_lanes(lanes), weights)
    return _best(chosen, lanes["meaning"], scaled_lanes(lanes), total, limit)


def _choose(corpus: Corpus, lookup: Lookup, eligible: Mask, asked: Floats | None) -> Candidates:
    by_words = _top(lookup.words, eligible & (lookup.words > 0))
    cosine = _cosine(corpus, asked)
    if cosine is None:
        return Candidates(corpus, lookup, np.sort(by_words), np.zeros(len(by_words)))
    by_meaning = _top(cosine, eligible & corpus.has_vector.view)
    slots = np.union1d(by_words, by_meaning)
    return Candidates(corpus, lookup, slots, cosine[slots].astype(np.float64))


def _top(values: NDArray[np.float32], allowed: Mask) -> NDArray[np.int64]:
    slots = np.flatnonzero(allowed)
    most = MOST_CANDIDATES // 2
    if len(slots) <= most:
        return slots
    return slots[np.argpartition(values[slots], len(slots) - most)[-most:]]


def _cosine(corpus: Corpus, asked: Floats | None) -> NDArray[np.float32] | None:
    vectors = corpus.vectors
    if asked is None or vectors is None or vectors.shape[1] != len(asked):
        return None
    return vectors @ asked


def _all_lanes(chosen: Sequence[Candidates], idf: Values, question: Question) -> dict[str, Values]:
    each = [raw_lanes(part, idf, asks_when=question.asks_when) for part in chosen]
    return {name: np.concatenate([lanes[name] for lanes in each]) for name in LANES} if each else {}


def _weighed(lanes: dict[str, Values], weights: Weights) -> Values:
    by_lane = weights.by_lane()
    total = sum((by_lane[name] * lanes[name] for name in LANES), np.zeros(len(lanes["words"])))
    return np.round(total, _DIGITS)


def _best(
    chosen: Sequence[Candidates],
    cosine: Values,
    lanes: dict[str, Values],
    total: Values,
    limit: int,
) -> list[Scored]:
    corpus_index = np.repeat(np.arange(len(chosen)), [len(part.slots) for part in chosen])
    keys = np.concatenate([part.corpus.keys.view[part.slots] for part in chosen])
    arrival = np.concatenate([part.corpus.order.view[part.slots] for part in chosen])
    ranked = np.lexsort((keys, -arrival, corpus_index, -total))[:limit]
    relevance = _relevance(total)
    return [
        Scored(
            int(corpus_index[row]),
            int(keys[row]),
            float(relevance[row]),
            {name: float(lanes[name][row]) for name in LANES} | {"cosine": float(cosine[row])},
        )
        for row in ranked
    ]


def _relevance(total: Values) -> Values:
    if total.max() - total.min() < 10**-_DIGITS:
        return np.ones_like(total)
    return LEAST_RELEVANCE + (1 - LEAST_RELEVANCE) * spread(total)
