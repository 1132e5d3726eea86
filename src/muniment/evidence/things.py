"""Rows that name a thing of a kind that the question asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import Corpus
from muniment.evidence.lookup import rarity
from muniment.evidence.query import Question


@dataclass(frozen=True, slots=True)
class Things:
    """One corpus's rows by slot: the summed rarity of the kinds that a row names a thing of.

    ``asked`` is that sum for a row that names one of each kind; 0 where no kind is asked for.
    """

    found: NDArray[np.float32]
    asked: float = 0.0


def look_for_things(corpora: Sequence[Corpus], question: Question) -> list[Things]:
    """Each corpus's things; a kind is the rarer, the fewer rows of all corpora name one."""
    found = [np.zeros(corpus.size, np.float32) for corpus in corpora]
    rows, asked = sum(len(corpus) for corpus in corpora), 0.0
    for kind in question.kinds:
        terms = np.fromiter(kind, np.uint64, len(kind))
        slots = [corpus.find_any(terms) for corpus in corpora]
        rare = rarity(rows, sum(map(len, slots)))
        asked += rare
        for sums, holding in zip(found, slots, strict=True):
            sums[holding] += np.float32(rare)
    return [Things(sums, asked) for sums in found]
