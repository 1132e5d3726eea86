"""Scoring a question against corpora: the one ranking of every store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import Corpus
from muniment.evidence.eligibility import Filters
from muniment.evidence.gathering import Gathered, gather
from muniment.evidence.lanes import Values, spread
from muniment.evidence.model import LinearModel, learned
from muniment.evidence.query import Question
from muniment.evidence.weights import DEFAULT, EVIDENCE, LANES, Ranking, Weights

Places = NDArray[np.int64]

LEAST_RELEVANCE = 0.01
"""The weakest candidate's relevance under given weights: other factors can still raise it."""

DISTILLED = 1.0
"""How far a typed memory is ahead of a message of which the same is known, in log-odds: it was kept
because it says something. The least value at which all facts of the half of
``benchmarks/quality/data/typed.jsonl`` that is for choosing were among the best six."""

_LEAST_LOG_ODDS = -700.0

_DIGITS = 9  # Scores that differ less are the same: sums differ in the last bits between machines.


@dataclass(frozen=True, slots=True)
class Scored:
    """A row found: ``corpus_index`` in the corpora passed, its ``key`` there.

    ``relevance`` lies in (0, 1], 1 for the best; ``lanes`` holds each lane by name (see
    :mod:`muniment.evidence.lanes`), ``cosine``, the similarity itself, and with a learned ranking
    what the features of each lane added, as ``learned:`` and the lane's name.
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
    weights: Ranking = DEFAULT,
) -> list[Scored]:
    """At most ``limit`` rows, best first; equals by corpus, then newest, then key.

    A row that shares no word with the question and has no embedding to compare is not found.
    ``session`` and ``exclude_keys`` concern messages only. Never raises for a question's content.
    """
    filters = Filters(now, as_of, include_invalid, kinds, session, exclude_keys, min_trust)
    if isinstance(weights, Weights):
        question = replace(question, kinds=(), times=())
    found = gather(corpora, question, embedding=embedding, filters=filters)
    if limit < 1 or not len(found):
        return []
    if isinstance(weights, Weights):
        return _by_weights(found, weights, limit)
    if not found.has_messages():
        return _by_weights(found, EVIDENCE, limit)
    return _by_model(found, learned(meaning=found.has_meaning()).less(weights.without), limit)


def _by_weights(found: Gathered, weights: Weights, limit: int) -> list[Scored]:
    lanes, by_lane = found.lanes(), weights.by_lane()
    total = sum((by_lane[name] * lanes[name] for name in LANES), np.zeros(len(found)))
    return _ranked(found, _relevance(np.round(total, _DIGITS)), limit)


def _by_model(found: Gathered, model: LinearModel, limit: int) -> list[Scored]:
    shares = model.shares(found.features(model.names))
    ahead = np.where(found.are_messages(), 0.0, DISTILLED)
    total = np.round(shares.sum(axis=0) + ahead, _DIGITS)

    def explain(places: Places) -> dict[str, Values]:
        return {**model.by_lane(shares[:, places]), "learned:distilled": ahead[places]}

    return _ranked(found, _odds(total), limit, explain)


def _ranked(
    found: Gathered,
    relevance: Values,
    limit: int,
    explain: Callable[[Places], dict[str, Values]] = lambda _places: {},
) -> list[Scored]:
    pool = _best(relevance, limit)
    chosen, relevance = found.only(pool), relevance[pool]
    index, keys, arrival = chosen.places()
    told = chosen.lanes() | explain(pool)
    order = np.lexsort((keys, -arrival, index, -relevance))[:limit]
    columns = [values[order].tolist() for values in (index, keys, relevance, *told.values())]
    return [
        Scored(corpus, key, share, dict(zip(told, lanes, strict=True)))
        for corpus, key, share, *lanes in zip(*columns, strict=True)
    ]


def _best(values: Values, limit: int) -> Places:
    """Where the ``limit`` greatest are, in the order given, and all that equal the last of them."""
    if len(values) <= limit:
        return np.arange(len(values))
    return np.flatnonzero(values >= np.partition(values, len(values) - limit)[-limit])


def _odds(total: Values) -> Values:
    """Each row's odds relative to the best: the model is a softmax, so that a factor of recall,
    which multiplies the relevance, counts as prior odds."""
    return np.asarray(np.exp(np.maximum(total - total.max(), _LEAST_LOG_ODDS)))


def _relevance(total: Values) -> Values:
    if total.max() - total.min() < 10**-_DIGITS:
        return np.ones_like(total)
    return LEAST_RELEVANCE + (1 - LEAST_RELEVANCE) * spread(total)
