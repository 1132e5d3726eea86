"""The evidence for each candidate as many small features, for a learned ranking.

Each feature is named ``lane:what``; the lane is what an explanation groups it under. What a
message is by its kind (see :mod:`muniment.lexical.marks`) and where it stands in its conversation
is said of messages only: of a typed memory it is not known (NaN).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.lanes import Candidates, Number, Scale, Values, at, over_held, weight_of
from muniment.evidence.postings import Slots
from muniment.evidence.query import Question
from muniment.lexical.dates import Span
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


_RARE_KIND = 10.0
_DAY = 86_400.0
# What happens is told on the same day, or in the days that follow; plans are told before.
_TOLD_AFTER, _TOLD_BEFORE = 10 * _DAY, 5 * _DAY

_LANES_OF_ANY_ROW = ("words:", "coverage:", "time:", "wanted:")
_MEANING_OF_ANY_ROW = frozenset(
    {"meaning:own", "meaning:squared", "meaning:words", "meaning:coverage", "meaning:time"}
    | {"concept:own", "concept:rarity", "concept:coverage"}
)


_STEPS = (-3, -2, -1, 0, 1, 2)


class _View:
    """One corpus's candidates with their neighbours, everything by candidate and made once.

    ``near`` (slots), ``words`` (BM25, relative to the best), ``cosine`` (scaled), ``held``
    (question's terms) and ``named`` are by step: how many messages later the neighbour stands,
    earlier where negative. Without a neighbour they are -1, and 0. ``coverage`` is the share of
    the question that the row holds itself, ``coverage_around`` with its two neighbours.
    """

    def __init__(self, chosen: Candidates, idf: Values, scale: Scale) -> None:
        self.chosen, self.idf = chosen, idf
        near = _neighbours(chosen)
        words = scale.of_words(at(chosen.lookup.words, near))
        held = at(chosen.lookup.held, near)
        named = at(chosen.lookup.named, near).astype(float)
        self.near, self.words = _by_step(near), _by_step(words)
        self.held, self.named = _by_step(held), _by_step(named)
        self.cosine = _by_step(_scaled(chosen, near, scale))
        self.around = self.held[0] | self.held[-1] | self.held[1]
        self.coverage = weight_of(self.held[0], idf)
        self.coverage_around = weight_of(self.around, idf)
        self._marks = _by_step(at(chosen.corpus.marks.view, near))
        self._marked: dict[tuple[int, Mark], Values] = {}

    def marked(self, step: int, mark: Mark) -> Values:
        """1 where the neighbour has the mark."""
        known = self._marked.get((step, mark))
        if known is None:
            known = self._marked[step, mark] = (self._marks[step] & int(mark) != 0).astype(float)
        return known


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: the rarity of each of the question's terms, the spans of time that it names,
    and whether it has an embedding to compare."""

    question: Question
    idf: Values
    spans: Sequence[Span]
    meaning: bool


def features(chosen: Candidates, asked: Asked, scale: Scale) -> Iterator[tuple[str, Values]]:
    """Every feature by name, a number a candidate; those of meaning where there is one."""
    view = _View(chosen, asked.idf, scale)
    yield from _of_words(view, asked.question)
    yield from _of_kind(view, asked.question)
    yield from _of_things(view)
    yield from _of_dates(view, asked.spans)
    if asked.meaning:
        yield from _of_meaning(view, asked.question)


def of_any_row(name: str) -> bool:
    """Whether the feature means something for a typed memory too."""
    return name.startswith(_LANES_OF_ANY_ROW) or name in _MEANING_OF_ANY_ROW


def _of_words(view: _View, question: Question) -> Iterator[tuple[str, Values]]:
    words, named, asked = view.words[0], view.named[0], view.marked(-1, Mark.ASKS)
    held = view.held[0]
    yield "words:own", words
    yield "words:squared", words**2
    yield "words:best", (words > 0.999).astype(float)
    yield "coverage:own", view.coverage
    yield "coverage:before", weight_of(held | view.held[-1], view.idf)
    yield "coverage:around", view.coverage_around
    yield "coverage:wide", weight_of(view.around | view.held[-2] | view.held[2], view.idf)
    yield "coverage:rarest", _rarest(held, view.idf)
    for step in (-3, -2, -1, 1, 2):
        yield f"context:words{step:+}", view.words[step]
    yield "context:session words", _of_session(view, words)
    yield "speaker:named", named
    yield "speaker:words", named * words
    yield "speaker:coverage", named * view.coverage_around
    yield "speaker:before", view.named[-1] * view.words[-1]
    yield "answer:words", asked * view.words[-1]
    yield "answer:own words", asked * words
    yield "answer:named", asked * view.words[-1] * named
    yield "answer:two before", view.marked(-2, Mark.ASKS) * view.words[-2]
    yield "answer:asks after", view.marked(1, Mark.ASKS) * view.words[1]
    timed = view.marked(0, Mark.TIME) * question.asks_when
    yield "time:words", timed * words
    yield "time:coverage", timed * view.coverage_around
    for kind, mark in _WANTED.items():
        yield f"wanted:{kind} words", (kind in question.asks) * view.marked(0, mark) * words
    for mark in (Mark.ASKS, Mark.FIRST_PERSON, Mark.ACKNOWLEDGES, Mark.PAST):
        yield f"kind:{mark.name} words", view.marked(0, mark) * words


def _of_kind(view: _View, question: Question) -> Iterator[tuple[str, Values]]:
    for mark in KINDS:
        yield f"kind:{mark.name}", view.marked(0, mark)
    length = np.log1p(view.chosen.corpus.lengths.view[view.chosen.slots].astype(float))
    yield "kind:length", np.minimum(length, 5.0)
    yield "kind:short", (length < 1.8).astype(float)
    yield "speaker:first person", view.named[0] * view.marked(0, Mark.FIRST_PERSON)
    yield "answer:any", view.marked(-1, Mark.ASKS)
    yield "answer:states", view.marked(-1, Mark.ASKS) * (1 - view.marked(0, Mark.ASKS))
    yield "context:opens", (view.near[-1] < 0).astype(float)
    yield "time:any", view.marked(0, Mark.TIME) * question.asks_when
    for kind, mark in _WANTED.items():
        yield f"wanted:{kind}", (kind in question.asks) * view.marked(0, mark)


def _of_things(view: _View) -> Iterator[tuple[str, Values]]:
    things, near = view.chosen.things, view.near
    share = things.found / np.float32(things.asked or 1.0)
    own, named = share[near[0]].astype(float), view.named[0]
    stated = view.marked(0, Mark.FIRST_PERSON) * (1 - view.marked(0, Mark.ASKS))
    yield "concept:own", own
    yield "concept:rarity", np.minimum(things.found[near[0]] / _RARE_KIND, 1.5).astype(float)
    yield "concept:coverage", own * view.coverage_around
    yield "concept:named", own * named
    yield "concept:named states", own * named * stated
    yield "concept:before", at(share, near[-1]).astype(float)
    yield "concept:after", at(share, near[1]).astype(float)


def _of_dates(view: _View, spans: Sequence[Span]) -> Iterator[tuple[str, Values]]:
    told = view.chosen.corpus.at.view[view.chosen.slots]
    inside, near = np.zeros(len(told)), np.zeros(len(told))
    for first, last in spans:
        inside = np.maximum(inside, (told >= first) & (told < last))
        since, until = np.maximum(told - last, 0.0), np.maximum(first - told, 0.0)
        near = np.maximum(near, np.exp(-since / _TOLD_AFTER - until / _TOLD_BEFORE))
    yield "date:inside", inside
    yield "date:near", near
    yield "date:near named", near * view.named[0]
    yield "date:near words", near * view.words[0]
    yield "date:near coverage", near * view.coverage_around
    yield "date:near time", near * view.marked(0, Mark.TIME)


def _of_meaning(view: _View, question: Question) -> Iterator[tuple[str, Values]]:
    cosine, named = view.cosine[0], view.named[0]
    yield "meaning:own", cosine
    yield "meaning:squared", cosine**2
    yield "meaning:words", cosine * view.words[0]
    yield "meaning:coverage", cosine * view.coverage
    for step in (-2, -1, 1, 2):
        yield f"meaning:{step:+}", view.cosine[step]
    yield "meaning:around", np.maximum(view.cosine[-1], view.cosine[1])
    yield "meaning:session", _of_session(view, cosine)
    yield "meaning:named", cosine * named
    yield "meaning:named before", view.cosine[-1] * view.named[-1]
    yield "meaning:answer", view.cosine[-1] * view.marked(-1, Mark.ASKS)
    yield "meaning:answers", cosine * view.marked(-1, Mark.ASKS)
    yield "meaning:time", cosine * view.marked(0, Mark.TIME) * question.asks_when
    for mark in (Mark.ASKS, Mark.FIRST_PERSON, Mark.ACKNOWLEDGES, Mark.PAST, Mark.FEELING):
        yield f"meaning:{mark.name}", cosine * view.marked(0, mark)


def _by_step(rows: NDArray[Number]) -> dict[int, NDArray[Number]]:
    return dict(zip(_STEPS, rows, strict=True))


def _neighbours(chosen: Candidates) -> NDArray[np.intp]:
    """Slots, (steps, candidates), -1 where there is none."""
    before, after = chosen.corpus.links()
    near: dict[int, Slots] = {0: chosen.slots.astype(np.int32)}
    for step in _STEPS[_STEPS.index(0) + 1 :]:
        near[step] = at(after, near[step - 1], absent=-1)
    for step in reversed(_STEPS[: _STEPS.index(0)]):
        near[step] = at(before, near[step + 1], absent=-1)
    return np.stack([near[step] for step in _STEPS]).astype(np.intp)


def _scaled(chosen: Candidates, near: NDArray[np.intp], scale: Scale) -> Values:
    every = chosen.similarity
    if every is None:
        return np.zeros(near.shape)
    return np.where(at(chosen.corpus.has_vector.view, near), scale.of_cosine(every[near]), 0.0)


def _rarest(held: NDArray[np.uint32], idf: Values) -> Values:
    if not len(idf):
        return np.zeros(len(held))
    rarest = over_held(held, idf, np.maximum)
    return rarest / max(float(idf.max()), 1e-9)


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
