"""The evidence for each candidate, one number from 0 to 1 a lane.

========  =================================================================================
words     BM25 over stems, relative to the best candidate
meaning   cosine similarity to the question, from the least similar row to the best
coverage  share of the question's terms, by rarity, held by the message and its neighbours
speaker   ``words`` where the question names who speaks, or asks in the first person
answer    the previous message's ``words`` where that one is a question
time      ``words`` where the question asks when and the row names a time
========  =================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import MESSAGE, Corpus
from muniment.evidence.lookup import Lookup
from muniment.evidence.things import Things
from muniment.lexical.marks import Mark

Values = NDArray[np.float64]
Number = TypeVar("Number", bound=np.generic)

_MOST_TERMS_IN_A_TABLE = 10  # a table of 1,024 sets: as many as there are candidates


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chosen slots of one corpus, the ``place``-th of those that were asked; ``similarity`` is
    every slot's cosine, where there is one."""

    corpus: Corpus
    lookup: Lookup
    things: Things
    slots: NDArray[np.int64]
    similarity: NDArray[np.float32] | None = None
    place: int = 0

    def are_messages(self) -> NDArray[np.bool_]:
        """Which candidates are messages of a conversation."""
        kinds = self.corpus.kinds.view[self.slots]
        return np.asarray(kinds == self.corpus.code("kind", MESSAGE))

    def cosine(self) -> Values:
        """The candidates' cosine to the question, 0 where there is none."""
        if self.similarity is None:
            return np.zeros(len(self.slots))
        return self.similarity[self.slots].astype(np.float64)

    def least(self) -> float:
        """The least cosine of any present row that has an embedding, 1 without one."""
        if self.similarity is None:
            return 1.0
        return float(self.similarity.min(where=self.corpus.has_vector.view, initial=1.0))


@dataclass(frozen=True, slots=True)
class Scale:
    """The bounds by which evidence is brought to 0..1, over all corpora together.

    ``words`` is the best candidate's; ``least`` the least cosine of any row, so that the scale
    does not depend on how many candidates there are, ``most`` the best candidate's.
    """

    words: float
    least: float
    most: float

    @classmethod
    def of(cls, chosen: Sequence[Candidates]) -> Scale:
        """The bounds of these candidates."""
        words = [float(part.lookup.words[part.slots].max(initial=0.0)) for part in chosen]
        known = [part for part in chosen if part.similarity is not None and len(part.slots)]
        least = [part.least() for part in known]
        most = [float(part.cosine().max()) for part in known]
        return cls(max(words, default=0.0) or 1.0, min(least, default=0.0), max(most, default=1.0))

    def of_words(self, found: NDArray[np.floating]) -> Values:
        """BM25 sums as shares of the best candidate's."""
        return np.asarray(np.minimum(found / self.words, 1.0), np.float64)

    def of_cosine(self, found: NDArray[np.floating]) -> Values:
        """Cosines from 0 at the least to 1 at the most."""
        span = max(self.most - self.least, 1e-6)
        return np.asarray(np.clip((found - self.least) / span, 0.0, 1.0), np.float64)


def lanes_of(
    chosen: Candidates, idf: Values, scale: Scale, *, asks_when: bool
) -> dict[str, Values]:
    """The lanes of one corpus's candidates."""
    slots, corpus = chosen.slots, chosen.corpus
    before, after = (link[slots] for link in corpus.links())
    words = scale.of_words(chosen.lookup.words[slots])
    asked = at(corpus.marks.view, before) & int(Mark.ASKS) != 0
    timed = corpus.marks.view[slots] & int(Mark.TIME) != 0
    held = chosen.lookup.held
    around = held[slots] | at(held, before) | at(held, after)
    known = corpus.has_vector.view[slots] & (chosen.similarity is not None)
    return {
        "words": words,
        "meaning": np.where(known, scale.of_cosine(chosen.cosine()), 0.0),
        "coverage": weight_of(around, idf),
        "speaker": words * chosen.lookup.named[slots],
        "answer": asked * scale.of_words(at(chosen.lookup.words, before)),
        "time": words * (timed & asks_when),
    }


def spread(values: Values) -> Values:
    """``values`` from 0 at the least to 1 at the greatest; they must not all be alike."""
    least = float(values.min())
    return (values - least) / (float(values.max()) - least)


def at(values: NDArray[Number], slots: NDArray[np.integer], *, absent: int = 0) -> NDArray[Number]:
    """``values`` at ``slots``, ``absent`` where a slot is -1."""
    found: NDArray[Number] = values[slots]
    missing = slots < 0
    if missing.any():
        found[missing] = absent
    return found


def weight_of(held: NDArray[np.uint32], idf: Values) -> Values:
    """The share of the question's terms, by rarity, that are in ``held``."""
    total = float(idf.sum())
    return over_held(held, idf, np.add) / total if total else np.zeros(len(held))


def over_held(held: NDArray[np.uint32], idf: Values, combine: np.ufunc) -> Values:
    """The rarities of the terms in each of ``held``, brought to one number by ``combine``."""
    if len(idf) <= _MOST_TERMS_IN_A_TABLE:
        return np.asarray(_of_every_set(idf, combine)[held])
    bits = held[:, None] >> np.arange(len(idf), dtype=np.uint32) & np.uint32(1)
    return np.asarray(combine.reduce(bits * idf, axis=1))


def _of_every_set(idf: Values, combine: np.ufunc) -> Values:
    """The answer for each set of terms, at the number whose bits are the set."""
    table = np.zeros(1)
    for rarity in idf:
        table = np.concatenate([table, combine(table, rarity)])
    return table
