"""A question's terms looked up in several corpora as if they were one collection.

Document frequencies and lengths are taken over all present rows of the corpora passed, that is
over what the caller may see; filters of type, validity or session choose among those afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import Corpus
from muniment.evidence.postings import Counts, Slots
from muniment.evidence.query import Question

SATURATION = 0.9
"""BM25's k1: how soon repetition of a word in one text stops to count."""

LENGTH_NORM = 0.3
"""BM25's b: how far long texts are held back."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """One corpus's side of a lookup, by slot.

    ``words`` is the BM25 sum; bit i of ``held`` says that the row holds the question's i-th term;
    ``named`` that the row's speaker is named in the question.
    """

    words: NDArray[np.float32]
    held: NDArray[np.uint32]
    named: NDArray[np.bool_]


def look_up(
    corpora: Sequence[Corpus], question: Question
) -> tuple[list[Lookup], NDArray[np.float64]]:
    """Each corpus's lookup, and the inverse document frequency of each of the question's terms."""
    asked, terms = (*question.terms, *question.names), len(question.terms)
    found = [corpus.find(asked) for corpus in corpora]
    rows = sum(len(corpus) for corpus in corpora)
    holding = [sum(len(hits[place][0]) for hits in found) for place in range(terms)]
    idf = np.array([rarity(rows, count) for count in holding], dtype=float)
    average = max(1.0, sum(corpus.total_length for corpus in corpora) / max(1, rows))
    lookups = [
        _one(corpus, hits[:terms], idf, average, _named(corpus, question, hits[terms:]))
        for corpus, hits in zip(corpora, found, strict=True)
    ]
    return lookups, idf


def rarity(rows: int, holding: int) -> float:
    """The inverse document frequency of what ``holding`` of ``rows`` hold."""
    return log(1 + (rows - holding + 0.5) / (holding + 0.5))


def _one(
    corpus: Corpus,
    hits: Sequence[tuple[Slots, Counts]],
    idf: NDArray[np.float64],
    average: float,
    named: NDArray[np.bool_],
) -> Lookup:
    words = np.zeros(corpus.size, np.float32)
    held = np.zeros(corpus.size, np.uint32)
    lengths = corpus.lengths.view
    for bit, (slots, counts) in enumerate(hits):
        often = counts.astype(np.float32)
        shape = (1 - LENGTH_NORM) + np.float32(LENGTH_NORM / average) * lengths[slots]
        gain = often * (SATURATION + 1) / (often + SATURATION * shape)
        words[slots] += np.float32(idf[bit]) * gain.astype(np.float32)
        held[slots] |= np.uint32(1 << bit)
    return Lookup(words, held, named)


def _named(
    corpus: Corpus, question: Question, hits: Sequence[tuple[Slots, Counts]]
) -> NDArray[np.bool_]:
    named = np.zeros(corpus.size, np.bool_)
    for slots, _ in hits:
        named[slots] = True
    if question.first_person and not named.any():
        # A conversation's user asks about itself: "which tea did I buy?"
        user = corpus.code("role", "user")
        named = (corpus.roles.view == user) & np.bool_(user >= 0)
    return named
