"""Which rows are worth weighing: the best by a first score that costs little a row.

A row's own first score is its words, relative to the best row's, and half of its cosine, from the
least of all rows to the greatest. A quarter of the message before and an eighth of the message
after are added to it: an answer seldom repeats the words of its question. Where a row has no such
neighbour it stands in for it, so that typed memories compete with messages. The shares are round
numbers: with them, of the four development conversations taken as one, 500 of 2,080 rows with an
embedder, and 1,000 by words alone, found what all of them find (``docs/recall.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import Corpus
from muniment.evidence.eligibility import Mask
from muniment.evidence.lookup import Lookup
from muniment.evidence.things import Things

Floats = NDArray[np.float32]
Slots = NDArray[np.intp]

MOST_CANDIDATES = 500
"""Rows whose evidence is weighed, at most, of all corpora together, where there is an embedding to
compare. By words alone, which tell less, it is twice as many."""

THING = np.float32(0.25)
"""What a thing of the kind asked for counts beside a word of the question."""

MEANING = np.float32(0.5)
"""What the nearest meaning counts beside the best words."""

BEFORE, AFTER = np.float32(0.25), np.float32(0.125)
"""What the message before a row, and the one after it, count beside the row itself."""


def shortlist(
    corpora: Sequence[Corpus],
    lookups: Sequence[Lookup],
    things: Sequence[Things],
    masks: Sequence[Mask],
    near: Sequence[Floats | None],
    *,
    around: bool,
) -> list[Slots]:
    """The slots of the best rows of all corpora together; of equals the newest.

    ``near`` is each slot's cosine where there is an embedding to compare. Without ``around`` a row
    stands for itself alone. A row that has neither words, its own or those of a neighbour that
    counts, nor an embedding to compare is not among them.
    """
    scores = _by_words(lookups, things)
    known = [
        None if cosine is None else corpus.has_vector.view
        for corpus, cosine in zip(corpora, near, strict=True)
    ]
    _add_meaning(scores, known, near)
    if around:
        scores = list(starmap(_with_neighbours, zip(corpora, scores, strict=True)))
    allowed = [
        mask & (score > 0) if compared is None else mask & ((score > 0) | compared)
        for mask, score, compared in zip(masks, scores, known, strict=True)
    ]
    by_words_alone = all(compared is None for compared in known)
    return _best(corpora, scores, allowed, MOST_CANDIDATES * (2 if by_words_alone else 1))


def _by_words(lookups: Sequence[Lookup], things: Sequence[Things]) -> list[Floats]:
    worded = [
        lookup.words + THING * own.found if own.asked else lookup.words
        for lookup, own in zip(lookups, things, strict=True)
    ]
    best = np.float32(max((each.max(initial=0.0) for each in worded), default=0.0) or 1.0)
    return [np.asarray(each / best) for each in worded]


def _add_meaning(
    scores: Sequence[Floats], known: Sequence[Mask | None], near: Sequence[Floats | None]
) -> None:
    compared = [
        (score, cosine, where)
        for score, cosine, where in zip(scores, near, map(_some, known), strict=True)
        if cosine is not None and where is not None
    ]
    if not compared:
        return
    least = min(cosine.min(where=where, initial=1.0) for _, cosine, where in compared)
    most = max(cosine.max(where=where, initial=-1.0) for _, cosine, where in compared)
    share = MEANING / np.float32(max(most - least, 1e-6))
    for score, cosine, where in compared:
        np.add(score, share * (cosine - least), out=score, where=where)


def _some(known: Mask | None) -> Mask | bool | None:
    """None where nothing is known, True where all is: much faster than a mask."""
    if known is None or not known.any():
        return None
    return True if known.all() else known


def _with_neighbours(corpus: Corpus, own: Floats) -> Floats:
    before, after = (links[: corpus.size] for links in corpus.links())
    if not before.strides[0]:  # one value for all of them: no messages
        return own * (1 + BEFORE + AFTER)
    score = own + BEFORE * own[before]
    score += AFTER * own[after]
    for links, share in ((before, BEFORE), (after, AFTER)):
        alone = np.flatnonzero(links < 0)  # above, -1 was taken for the last row
        score[alone] += share * (own[alone] - own[-1])
    return score


def _best(
    corpora: Sequence[Corpus], values: Sequence[Floats], allowed: Sequence[Mask], most: int
) -> list[Slots]:
    slots = [np.flatnonzero(mask) for mask in allowed]
    if sum(map(len, slots)) <= most:
        return slots
    found = np.concatenate([value[own] for value, own in zip(values, slots, strict=True)])
    least = np.partition(found, len(found) - most)[-most]
    kept, level = found > least, np.flatnonzero(found == least)
    left = most - int(kept.sum())
    if left < len(level):
        arrival = [c.order.view[own] for c, own in zip(corpora, slots, strict=True)]
        level = level[np.argsort(-np.concatenate(arrival)[level], kind="stable")[:left]]
    kept[level] = True
    parts = np.split(kept, np.cumsum([len(own) for own in slots])[:-1])
    return [own[part] for own, part in zip(slots, parts, strict=True)]
