"""The evidence for each candidate as many small features, for a learned ranking.

Each feature is named ``lane:what``; the lane is what an explanation groups it under. What a
message is by its kind (see :mod:`muniment.lexical.marks`) and where it stands in its conversation
is said of messages only: of a typed memory it is not known (NaN).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import MESSAGE
from muniment.evidence.lanes import Candidates, Scale, Values, weight_of
from muniment.evidence.query import Question
from muniment.lexical.marks import Mark

KINDS = (
    Mark.ASKS,
    Mark.ASKS_ONLY,
    Mark.TIME,
    Mark.PLACE,
    Mark.NUMBER,
    Mark.FIRST_PERSON,
    Mark.SECOND_PERSON,
    Mark.WE,
    Mark.ACKNOWLEDGES,
    Mark.GREETS,
    Mark.THANKS,
    Mark.REASON,
    Mark.FEELING,
    Mark.NAMED,
    Mark.PLANS,
    Mark.PAST,
    Mark.EXCLAIMS,
    Mark.NEGATES,
    Mark.PERSON,
)
_WANTED = {
    "where": Mark.PLACE,
    "who": Mark.PERSON,
    "number": Mark.NUMBER,
    "reason": Mark.REASON,
    "feeling": Mark.FEELING,
    "plan": Mark.PLANS,
}


_LANES_OF_ANY_ROW = ("words:", "coverage:", "time:", "wanted:")
_MEANING_OF_ANY_ROW = frozenset(
    {"meaning:own", "meaning:squared", "meaning:words", "meaning:coverage", "meaning:time"}
)


_REACH = 3


class _View:
    """One corpus's candidates with their neighbours, everything by candidate."""

    def __init__(self, chosen: Candidates, idf: Values, scale: Scale) -> None:
        self.chosen, self.idf, self.scale = chosen, idf, scale
        before, after = chosen.corpus.links()
        self._near = {0: chosen.slots.astype(np.int32)}
        for step in range(1, _REACH + 1):
            self._near[-step] = _follow(before, self._near[1 - step])
            self._near[step] = _follow(after, self._near[step - 1])
        marks = chosen.corpus.marks.view
        self._marks = {
            step: np.where(self._near[step] >= 0, marks[self._near[step]], 0)
            for step in (-2, -1, 0, 1)
        }

    def near(self, step: int) -> NDArray[np.int32]:
        """The slot ``step`` messages later (earlier where negative), -1 where there is none."""
        return self._near[step]

    def marked(self, step: int, mark: Mark) -> Values:
        """1 where the message ``step`` later has the mark."""
        return np.asarray(self._marks[step] & int(mark) != 0, float)

    def words(self, slots: NDArray[np.integer]) -> Values:
        """The BM25 sum there, relative to the best candidate."""
        found = np.where(slots >= 0, self.chosen.lookup.words[slots], np.float32(0))
        return self.scale.of_words(found)

    def cosine(self, slots: NDArray[np.integer]) -> Values:
        """The similarity there, scaled; 0 where there is no embedding."""
        every = self.chosen.similarity
        if every is None:
            return np.zeros(len(slots))
        known = (slots >= 0) & self.chosen.corpus.has_vector.view[slots]
        return np.where(known, self.scale.of_cosine(every[slots]), 0.0)

    def held(self, slots: NDArray[np.integer]) -> NDArray[np.uint32]:
        return np.where(slots >= 0, self.chosen.lookup.held[slots], np.uint32(0))

    def named(self, slots: NDArray[np.integer]) -> Values:
        return np.asarray((slots >= 0) & self.chosen.lookup.named[slots], float)


def features(
    chosen: Candidates, idf: Values, question: Question, scale: Scale, *, meaning: bool
) -> dict[str, Values]:
    """Every feature by name, a number a candidate; those of meaning where they are asked for."""
    view = _View(chosen, idf, scale)
    found = dict(_of_words(view, question)) | dict(_of_kind(view, question))
    if meaning:
        found |= dict(_of_meaning(view, question))
    message = chosen.corpus.kinds.view[chosen.slots] == chosen.corpus.code("kind", MESSAGE)
    return {
        name: values if _of_any_row(name) else np.where(message, values, np.nan)
        for name, values in found.items()
    }


def _of_any_row(name: str) -> bool:
    return name.startswith(_LANES_OF_ANY_ROW) or name in _MEANING_OF_ANY_ROW


def _of_words(view: _View, question: Question) -> Iterator[tuple[str, Values]]:
    own, before, after = view.near(0), view.near(-1), view.near(1)
    words, named = view.words(own), view.named(own)
    asked = view.marked(-1, Mark.ASKS)
    held, around = view.held(own), view.held(own) | view.held(before) | view.held(after)
    yield "words:own", words
    yield "words:squared", words**2
    yield "words:best", (words > 0.999).astype(float)
    yield "coverage:own", weight_of(held, view.idf)
    yield "coverage:before", weight_of(held | view.held(before), view.idf)
    yield "coverage:around", weight_of(around, view.idf)
    wide = around | view.held(view.near(-2)) | view.held(view.near(2))
    yield "coverage:wide", weight_of(wide, view.idf)
    yield "coverage:rarest", _rarest(held, view.idf)
    for step in (-3, -2, -1, 1, 2):
        yield f"context:words{step:+}", view.words(view.near(step))
    yield "context:session words", _of_session(view, words)
    yield "speaker:named", named
    yield "speaker:words", named * words
    yield "speaker:coverage", named * weight_of(around, view.idf)
    yield "speaker:before", view.named(before) * view.words(before)
    yield "answer:words", asked * view.words(before)
    yield "answer:own words", asked * words
    yield "answer:named", asked * view.words(before) * named
    yield "answer:two before", view.marked(-2, Mark.ASKS) * view.words(view.near(-2))
    yield "answer:asks after", view.marked(1, Mark.ASKS) * view.words(after)
    timed = view.marked(0, Mark.TIME) * question.asks_when
    yield "time:words", timed * words
    yield "time:coverage", timed * weight_of(around, view.idf)
    for kind, mark in _WANTED.items():
        yield f"wanted:{kind} words", (kind in question.asks) * view.marked(0, mark) * words
    for mark in (Mark.ASKS, Mark.FIRST_PERSON, Mark.ACKNOWLEDGES, Mark.PAST):
        yield f"kind:{mark.name} words", view.marked(0, mark) * words


def _of_kind(view: _View, question: Question) -> Iterator[tuple[str, Values]]:
    own, before = view.near(0), view.near(-1)
    for mark in KINDS:
        yield f"kind:{mark.name}", view.marked(0, mark)
    length = np.log1p(view.chosen.corpus.lengths.view[own].astype(float))
    yield "kind:length", np.minimum(length, 5.0)
    yield "kind:short", (length < 1.8).astype(float)
    named = view.named(own)
    yield "speaker:first person", named * view.marked(0, Mark.FIRST_PERSON)
    yield "answer:any", view.marked(-1, Mark.ASKS)
    yield "answer:states", view.marked(-1, Mark.ASKS) * (1 - view.marked(0, Mark.ASKS))
    yield "context:opens", (before < 0).astype(float)
    yield "time:any", view.marked(0, Mark.TIME) * question.asks_when
    for kind, mark in _WANTED.items():
        yield f"wanted:{kind}", (kind in question.asks) * view.marked(0, mark)


def _of_meaning(view: _View, question: Question) -> Iterator[tuple[str, Values]]:
    own, before, after = view.near(0), view.near(-1), view.near(1)
    cosine, named = view.cosine(own), view.named(own)
    yield "meaning:own", cosine
    yield "meaning:squared", cosine**2
    yield "meaning:words", cosine * view.words(own)
    yield "meaning:coverage", cosine * weight_of(view.held(own), view.idf)
    for step in (-2, -1, 1, 2):
        yield f"meaning:{step:+}", view.cosine(view.near(step))
    yield "meaning:around", np.maximum(view.cosine(before), view.cosine(after))
    yield "meaning:session", _of_session(view, cosine)
    yield "meaning:named", cosine * named
    yield "meaning:named before", view.cosine(before) * view.named(before)
    yield "meaning:answer", view.cosine(before) * view.marked(-1, Mark.ASKS)
    yield "meaning:answers", cosine * view.marked(-1, Mark.ASKS)
    yield "meaning:time", cosine * view.marked(0, Mark.TIME) * question.asks_when
    for mark in (Mark.ASKS, Mark.FIRST_PERSON, Mark.ACKNOWLEDGES, Mark.PAST, Mark.FEELING):
        yield f"meaning:{mark.name}", cosine * view.marked(0, mark)


def _follow(links: NDArray[np.int32], slots: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(slots >= 0, links[slots], np.int32(-1))


def _rarest(held: NDArray[np.uint32], idf: Values) -> Values:
    if not len(idf):
        return np.zeros(len(held))
    bits = held[:, None] >> np.arange(len(idf), dtype=np.uint32) & np.uint32(1)
    return np.asarray((bits * idf).max(axis=1) / max(float(idf.max()), 1e-9))


def _of_session(view: _View, values: Values) -> Values:
    """The mean of a session's three best candidates, for each of its candidates; 0 outside."""
    sessions = view.chosen.corpus.sessions.view[view.chosen.slots]
    order = np.lexsort((-values, sessions))
    ordered = sessions[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else order
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    best = np.where(place < 3, values[order], 0.0)
    sums = np.add.reduceat(best, starts) / 3 if len(starts) else best
    spread = np.empty(len(order))
    spread[order] = np.repeat(sums, np.diff(np.r_[starts, len(order)]))
    return np.where(sessions >= 0, spread, 0.0)
