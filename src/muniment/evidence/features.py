"""The evidence for each candidate as many small features, for a learned ranking.

Each feature is named ``lane:what``; the lane is what an explanation groups it under. What a
message is by its kind (see :mod:`muniment.lexical.marks`) and where it stands in its conversation
is said of messages only: of a typed memory it is not known (NaN).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from muniment.evidence.query import Question
from muniment.evidence.view import KINDS, Values, View, row
from muniment.lexical.dates import Span
from muniment.lexical.marks import Mark

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

_TIMES_WORDS = (Mark.ASKS, Mark.FIRST_PERSON, Mark.ACKNOWLEDGES, Mark.PAST)
_TIMES_MEANING = (*_TIMES_WORDS, Mark.FEELING)
_WORDS_AROUND, _MEANING_AROUND = (-3, -2, -1, 1, 2), (-2, -1, 1, 2)

Block = tuple[tuple[str, ...], Values]
"""Names of features, and their numbers: (features, candidates)."""

Rows = Iterator[tuple[tuple[str, ...], Values]]
"""Parts of a block; one feature may be a row alone."""

# A length counts as its logarithm; from 148 terms on, all are as long as each other.
_LENGTHS = np.minimum(np.log1p(np.arange(149.0)), 5.0)


def _names(pattern: str, of: Sequence[object]) -> tuple[str, ...]:
    return tuple(pattern.format(each) for each in of)


_MARKS = _names("kind:{}", [mark.name for mark in KINDS])
_MARKS_WORDS = _names("kind:{} words", [mark.name for mark in _TIMES_WORDS])
_MARKS_MEANING = _names("meaning:{}", [mark.name for mark in _TIMES_MEANING])
_WANTS, _WANTS_WORDS = _names("wanted:{}", [*_WANTED]), _names("wanted:{} words", [*_WANTED])
_OF_THINGS = ("own", "rarity", "coverage", "named", "named states", "before", "after")
_OF_DATES = ("inside", "near", "near named", "near words", "near coverage", "near time")
_THINGS, _DATES = _names("concept:{}", _OF_THINGS), _names("date:{}", _OF_DATES)
_WORDS_BY_STEP = _names("context:words{:+}", _WORDS_AROUND)
_MEANING_BY_STEP = _names("meaning:{:+}", _MEANING_AROUND)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: the question, the spans of time that it names, and whether it has an
    embedding to compare."""

    question: Question
    spans: Sequence[Span]
    meaning: bool


def features(view: View, asked: Asked) -> Iterator[Block]:
    """Every feature by name, a number a candidate; those of meaning where there is one."""
    question, wanted = asked.question, _wanted(view, asked.question)
    yield _stacked(_of_words(view, question, wanted))
    yield _stacked(_of_kind(view, question, wanted))
    yield _of_things(view)
    yield _of_dates(view, asked.spans)
    if asked.meaning:
        yield _stacked(_of_meaning(view, question))


def of_any_row(name: str) -> bool:
    """Whether the feature means something for a typed memory too."""
    return name.startswith(_LANES_OF_ANY_ROW) or name in _MEANING_OF_ANY_ROW


def _stacked(rows: Rows) -> Block:
    names, values = zip(*rows, strict=True)
    every = tuple(chain.from_iterable(names))
    table = np.empty((len(every), values[0].shape[-1]))
    first = 0
    for own, some in zip(names, values, strict=True):
        table[first : first + len(own)] = some
        first += len(own)
    return every, table


def _of_words(view: View, question: Question, wanted: Values) -> Rows:
    words, named, held = view.words[row(0)], view.named[row(0)], view.held
    before, asked = view.words[row(-1)], view.asks[row(-1)]
    share = view.rarities.share
    yield ("words:own",), words
    yield ("words:squared",), words**2
    yield ("words:best",), (words > 0.999).astype(float)
    yield ("coverage:own",), view.coverage
    yield ("coverage:before",), share(held[row(0)] | held[row(-1)])
    yield ("coverage:around",), view.coverage_around
    yield ("coverage:wide",), share(view.around | held[row(-2)] | held[row(2)])
    yield ("coverage:rarest",), view.rarities.rarest(held[row(0)])
    yield _WORDS_BY_STEP, view.words[[row(step) for step in _WORDS_AROUND]]
    yield ("context:session words",), view.of_session(words)
    yield ("speaker:named",), named
    yield ("speaker:words",), named * words
    yield ("speaker:coverage",), named * view.coverage_around
    yield ("speaker:before",), view.named[row(-1)] * before
    yield ("answer:words",), asked * before
    yield ("answer:own words",), asked * words
    yield ("answer:named",), asked * before * named
    yield ("answer:two before",), view.asks[row(-2)] * view.words[row(-2)]
    yield ("answer:asks after",), view.asks[row(1)] * view.words[row(1)]
    timed = view.marked(Mark.TIME) * question.asks_when
    yield ("time:words",), timed * words
    yield ("time:coverage",), timed * view.coverage_around
    yield _WANTS_WORDS, wanted * words
    yield _MARKS_WORDS, np.array([view.marked(mark) for mark in _TIMES_WORDS]) * words


def _of_kind(view: View, question: Question, wanted: Values) -> Rows:
    yield _MARKS, view.kinds
    length = _LENGTHS[np.minimum(view.lengths, len(_LENGTHS) - 1)]
    asked_before, asks = view.asks[row(-1)], view.asks[row(0)]
    yield ("kind:length",), length
    yield ("kind:short",), (length < 1.8).astype(float)
    yield ("speaker:first person",), view.named[row(0)] * view.marked(Mark.FIRST_PERSON)
    yield ("answer:any",), asked_before
    yield ("answer:states",), asked_before * (1 - asks)
    yield ("context:opens",), (~view.there[row(-1)]).astype(float)
    yield ("time:any",), view.marked(Mark.TIME) * question.asks_when
    yield _WANTS, wanted


def _wanted(view: View, question: Question) -> Values:
    wanted = np.zeros((len(_WANTED), len(view)))
    for place, (kind, mark) in enumerate(_WANTED.items()):
        if kind in question.asks:
            wanted[place] = view.marked(mark)
    return wanted


def _of_things(view: View) -> Block:
    if not view.asked_things:
        return _THINGS, np.zeros((len(_THINGS), len(view)))
    share = (view.things / np.float32(view.asked_things)).astype(float)
    own, named = share[row(0)], view.named[row(0)]
    rarity = np.minimum(view.things[row(0)] / _RARE_KIND, 1.5).astype(float)
    states = view.marked(Mark.FIRST_PERSON) * (1 - view.asks[row(0)])
    known = [own, rarity, own * view.coverage_around, own * named, own * named * states]
    return _THINGS, np.array([*known, share[row(-1)], share[row(1)]])


def _of_dates(view: View, spans: Sequence[Span]) -> Block:
    told = view.told
    inside, near = np.zeros(len(told)), np.zeros(len(told))
    if not spans:
        return _DATES, np.zeros((len(_DATES), len(told)))
    for first, last in spans:
        inside = np.maximum(inside, (told >= first) & (told < last))
        since, until = np.maximum(told - last, 0.0), np.maximum(first - told, 0.0)
        near = np.maximum(near, np.exp(-since / _TOLD_AFTER - until / _TOLD_BEFORE))
    beside = (view.named[row(0)], view.words[row(0)], view.coverage_around, view.marked(Mark.TIME))
    return _DATES, np.array([inside, near, *(near * each for each in beside)])


def _of_meaning(view: View, question: Question) -> Rows:
    cosine, named = view.cosine[row(0)], view.named[row(0)]
    before, asked = view.cosine[row(-1)], view.asks[row(-1)]
    yield ("meaning:own",), cosine
    yield ("meaning:squared",), cosine**2
    yield ("meaning:words",), cosine * view.words[row(0)]
    yield ("meaning:coverage",), cosine * view.coverage
    yield _MEANING_BY_STEP, view.cosine[[row(step) for step in _MEANING_AROUND]]
    yield ("meaning:around",), np.maximum(before, view.cosine[row(1)])
    yield ("meaning:session",), view.of_session(cosine)
    yield ("meaning:named",), cosine * named
    yield ("meaning:named before",), before * view.named[row(-1)]
    yield ("meaning:answer",), before * asked
    yield ("meaning:answers",), cosine * asked
    yield ("meaning:time",), cosine * view.marked(Mark.TIME) * question.asks_when
    yield _MARKS_MEANING, np.array([view.marked(mark) for mark in _TIMES_MEANING]) * cosine
