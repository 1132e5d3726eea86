"""Scoring a question against corpora: the one ranking of every store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from muniment.domain.query import Reach
from muniment.evidence.corpus import Corpus
from muniment.evidence.eligibility import Filters
from muniment.evidence.explaining import Explain, Lanes, Places, Told
from muniment.evidence.features import features
from muniment.evidence.gathering import Gathered, gather
from muniment.evidence.lanes import lanes_of, spread
from muniment.evidence.model import LinearModel, learned
from muniment.evidence.query import Question, analyze
from muniment.evidence.view import Values
from muniment.evidence.weights import DEFAULT, EVIDENCE, LANES, Ranking, Weights

LEAST_RELEVANCE = 0.01
"""The weakest candidate's relevance under given weights: other factors can still raise it."""

DISTILLED = 1.0
"""How far a typed memory is ahead of a message of which the same is known, in log-odds: it was kept
because it says something. The least value at which all facts of the half of
``benchmarks/quality/data/typed.jsonl`` that is for choosing were among the best six."""

_LEAST_LOG_ODDS = -700.0

_NEARLY = 1 - 1e-6  # factors are worked out again for what is read, their last bits otherwise

_DIGITS = 9  # Scores that differ less are the same: sums differ in the last bits between machines.


class Scored(NamedTuple):
    """A row found: ``corpus_index`` in the corpora passed, its ``key`` there.

    ``relevance`` lies in (0, 1], 1 for the best; ``lanes`` holds each lane by name (see
    :mod:`muniment.evidence.lanes`), ``cosine``, the similarity itself, and with a learned ranking
    what the features of each lane added, as ``learned:`` and the lane's name.
    """

    corpus_index: int
    key: int
    relevance: float
    lanes: Mapping[str, float]


class _Most(NamedTuple):
    limit: int
    reach: Reach | None

    def of(self, order: Places, relevance: Values, found: Gathered) -> Places:
        """Those of ``order``, places of candidates best first, that are answered."""
        order, reach = order[: self.limit], self.reach
        if reach is None or len(order) <= reach.rows:
            return order
        age = np.maximum(reach.now - found.values("at")[order], 0.0)
        importance = found.values("importance")[order]
        raised = relevance[order] * (1 + importance) * (1 + np.exp2(-age / reach.half_life))
        enough = np.partition(raised, -reach.rows)[-reach.rows]
        near: Places = order[raised * reach.factor >= enough * _NEARLY]
        return near


def score(
    corpora: Sequence[Corpus],
    question: Question | str,
    filters: Filters,
    *,
    embedding: Sequence[float] | None,
    limit: int = 100,
    reach: Reach | None = None,
    weights: Ranking = DEFAULT,
) -> list[Scored]:
    """At most ``limit`` rows within ``reach``, best first; equals by corpus, then newest, then key.

    A row that shares no word with the question and has no embedding to compare is not found,
    unless the ranking counts the messages beside it and those do share one.
    Never raises for a question's content.
    """
    if limit < 1 or not any(map(len, corpora)):
        return []
    question = analyze(question) if isinstance(question, str) else question
    if isinstance(weights, Weights):
        question = replace(question, kinds=(), times=())
    found = gather(corpora, question, embedding=embedding, filters=filters, around=weights.around)
    if not len(found):
        return []
    most = _Most(limit, reach)
    if isinstance(weights, Weights):
        return _by_weights(found, weights, most)
    if not found.has_messages():
        return _by_weights(found, EVIDENCE, most)
    return _by_model(found, learned(meaning=found.has_meaning()).less(weights.without), most)


def _by_weights(found: Gathered, weights: Weights, most: _Most) -> list[Scored]:
    lanes, by_lane = _lanes(found)(), weights.by_lane()
    total = sum((by_lane[name] * lanes[name] for name in LANES), np.zeros(len(found)))
    return _ranked(found, _relevance(np.round(total, _DIGITS)), most, lambda _places: {})


def _by_model(found: Gathered, model: LinearModel, most: _Most) -> list[Scored]:
    messages = found.are_messages
    view, asked = found.view, found.asked  # and not the corpora, which would be held on to
    added = model.totals(features(view, asked), messages, view.found)
    ahead = np.where(messages, 0.0, DISTILLED)
    total = np.round(added + ahead, _DIGITS)

    def explain(places: Places) -> dict[str, Values]:
        lanes = model.by_lane(features(view, asked), messages, view.found, added)
        lanes["learned:distilled"] = ahead
        return {name: values[places] for name, values in lanes.items()}

    return _ranked(found, _odds(total), most, explain)


def _lanes(found: Gathered) -> Callable[[], dict[str, Values]]:
    return partial(lanes_of, found.view, asks_when=found.asked.question.asks_when)


def _ranked(found: Gathered, relevance: Values, most: _Most, explain: Explain) -> list[Scored]:
    pool = _best(relevance, most.limit)
    places = (found.corpora(), found.values("keys"), found.values("order"))
    index, keys, arrival = (column[pool] for column in places)
    order = pool[np.lexsort((keys, -arrival, index, -relevance[pool]))]
    chosen = most.of(order, relevance, found)
    told = Told(_lanes(found), chosen, explain)
    columns = (column[chosen].tolist() for column in (*places[:2], relevance))
    return [
        Scored(corpus, key, share, Lanes(told, place))
        for place, (corpus, key, share) in enumerate(zip(*columns, strict=True))
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
