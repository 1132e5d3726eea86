"""The evidence for each candidate, one number from 0 to 1 a lane.

========  =================================================================================
words     BM25 over stems, relative to the best candidate
meaning   cosine similarity to the question, from the least to the most similar candidate
coverage  share of the question's terms, by rarity, held by the message and its neighbours
speaker   ``words`` where the question names who speaks, or asks in the first person
answer    the previous message's ``words`` where that one is a question
time      ``words`` where the question asks when and the row names a time
========  =================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import Corpus
from muniment.evidence.lookup import Lookup
from muniment.evidence.postings import Slots
from muniment.lexical.marks import Mark

Values = NDArray[np.float64]
Number = TypeVar("Number", np.bool_, np.float32, np.uint32)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chosen slots of one corpus, with what is known of them."""

    corpus: Corpus
    lookup: Lookup
    slots: NDArray[np.int64]
    cosine: Values


def raw_lanes(chosen: Candidates, idf: Values, *, asks_when: bool) -> dict[str, Values]:
    """The lanes before scaling; ``words`` and those made from it are BM25 sums."""
    slots, corpus = chosen.slots, chosen.corpus
    before, after = (link[slots] for link in corpus.links())
    words = chosen.lookup.words[slots].astype(np.float64)
    asked = _at(corpus.marks.view & int(Mark.ASKS) != 0, before)
    timed = corpus.marks.view[slots] & int(Mark.TIME) != 0
    held = chosen.lookup.held
    around = held[slots] | _at(held, before) | _at(held, after)
    return {
        "words": words,
        "meaning": chosen.cosine,
        "coverage": _weight_of(around, idf),
        "speaker": words * chosen.lookup.named[slots],
        "answer": asked * _at(chosen.lookup.words, before).astype(np.float64),
        "time": words * (timed & asks_when),
    }


def scaled_lanes(lanes: dict[str, Values]) -> dict[str, Values]:
    """All candidates' lanes brought to 0..1."""
    best = max(float(lanes["words"].max(initial=0.0)), 1e-9)
    scaled = {
        name: np.minimum(lanes[name] / best, 1.0) for name in ("words", "speaker", "answer", "time")
    }
    return scaled | {"meaning": spread(lanes["meaning"]), "coverage": lanes["coverage"]}


def spread(values: Values) -> Values:
    """``values`` from 0 at the least to 1 at the greatest; all 0 where they are alike."""
    if not len(values):
        return values
    least, greatest = float(values.min()), float(values.max())
    if greatest - least < 1e-9:
        return np.zeros_like(values)
    return (values - least) / (greatest - least)


def _at(values: NDArray[Number], slots: Slots) -> NDArray[Number]:
    """``values`` at ``slots``, 0 where a slot is -1."""
    return np.where(slots >= 0, values[slots], np.zeros((), values.dtype))


def _weight_of(held: NDArray[np.uint32], idf: Values) -> Values:
    total = float(idf.sum())
    if not total:
        return np.zeros(len(held))
    bits = held[:, None] >> np.arange(len(idf), dtype=np.uint32) & np.uint32(1)
    return bits @ idf / total
