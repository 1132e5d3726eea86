"""Candidates with the messages around them: what every lane and feature is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import MESSAGE, Corpus
from muniment.evidence.lookup import Lookup
from muniment.evidence.things import Things
from muniment.lexical.marks import Mark

Values = NDArray[np.float64]
Number = TypeVar("Number", bound=np.generic)

STEPS = (-3, -2, -1, 0, 1, 2)
"""How many messages later than a candidate a neighbour stands, earlier where negative."""

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
"""What a message can be, by the marks of :mod:`muniment.lexical.marks`."""

_HERE = STEPS.index(0)
_BITS = np.array([[int(mark)] for mark in KINDS])
_PLACE = {mark: place for place, mark in enumerate(KINDS)}
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
        known = self.corpus.has_vector.view
        all_are = known.all()  # then a plain minimum, which is ten times faster
        return float(self.similarity.min(where=True if all_are else known, initial=1.0))


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


class Rarities:
    """What sets of a question's terms weigh; ``idf`` is each term's rarity, a set its bits."""

    def __init__(self, idf: Values) -> None:
        self._idf = idf

    def share(self, held: NDArray[np.uint32]) -> Values:
        """The share of all terms, by rarity, that each of ``held`` has."""
        total = float(self._idf.sum())
        return self._over(held, np.add, self._sums) / total if total else np.zeros(held.shape)

    def rarest(self, held: NDArray[np.uint32]) -> Values:
        """The rarity of the rarest term of each of ``held``, relative to the rarest of all."""
        if not len(self._idf):
            return np.zeros(held.shape)
        return self._over(held, np.maximum, self._greatest) / max(float(self._idf.max()), 1e-9)

    @cached_property
    def _sums(self) -> Values | None:
        return self._of_every_set(np.add)

    @cached_property
    def _greatest(self) -> Values | None:
        return self._of_every_set(np.maximum)

    def _over(self, held: NDArray[np.uint32], combine: np.ufunc, known: Values | None) -> Values:
        if known is not None:
            return np.asarray(known[held])
        bits = held[..., None] >> np.arange(len(self._idf), dtype=np.uint32) & np.uint32(1)
        return np.asarray(combine.reduce(bits * self._idf, axis=-1))

    def _of_every_set(self, combine: np.ufunc) -> Values | None:
        """The answer for each set of terms, at the number whose bits are the set."""
        if len(self._idf) > _MOST_TERMS_IN_A_TABLE:
            return None
        table = np.zeros(1)
        for rarity in self._idf:
            table = np.concatenate([table, combine(table, rarity)])
        return table


class _Part(NamedTuple):
    """One corpus's side of a :class:`View`, in arrays whose last axis is the candidates."""

    there: NDArray[np.bool_]
    words: Values
    held: NDArray[np.uint32]
    named: Values
    cosine: Values
    marks: NDArray[np.int64]
    things: NDArray[np.float32]
    sessions: NDArray[np.int64]
    lengths: NDArray[np.int32]
    told: Values
    similarity: Values
    compared: NDArray[np.bool_]


class View:
    """The candidates of all corpora and their neighbours, everything by candidate and made once.

    ``words`` (BM25, relative to the best), ``cosine`` (scaled), ``held`` (question's terms),
    ``named``, ``asks`` (it is a question), ``things`` and ``there`` (whether there is one) are
    rows by step, see :data:`STEPS`, or rather ``row(step)``; 0 without a neighbour. ``kinds`` has
    a row a mark of :data:`KINDS`. ``similarity`` is the cosine as it is, 0 where the row is not
    ``compared``. ``coverage`` is the share of the question that the row holds itself,
    ``coverage_around`` with its two neighbours.
    """

    def __init__(self, chosen: Sequence[Candidates], rarities: Rarities, scale: Scale) -> None:
        self.rarities, self.scale = rarities, scale
        self.asked_things = max((part.things.asked for part in chosen), default=0.0)
        parts = [_part(each, scale) for each in chosen if len(each.slots)]
        joined = parts[0] if len(parts) == 1 else _joined(parts)
        self.there, self.words, self.held, self.named, self.cosine = joined[:5]
        marks, self.things, self._sessions, self.lengths, self.told = joined[5:10]
        self.similarity, self.compared = joined[10:]
        self.asks = (marks & int(Mark.ASKS) != 0).astype(float)
        self.kinds = (marks[_HERE] & _BITS != 0).astype(float)
        self.around = self.held[_HERE] | self.held[_HERE - 1] | self.held[_HERE + 1]
        self.coverage = rarities.share(self.held[_HERE])
        self.coverage_around = rarities.share(self.around)

    def __len__(self) -> int:
        return len(self.told)

    @cached_property
    def found(self) -> NDArray[np.bool_]:
        """Which candidates have words, things or an embedding of their own to be found by."""
        words, things = self.words[_HERE] > 0, self.things[_HERE] > 0
        return np.asarray(words | things | self.compared)

    def marked(self, mark: Mark) -> Values:
        """1 where the candidate has a mark of :data:`KINDS`."""
        found: Values = self.kinds[_PLACE[mark]]
        return found

    def of_session(self, values: Values) -> Values:
        """The mean of a session's three best of ``values`` (0..1), for each of its candidates;
        0 outside of sessions."""
        starts, sizes, is_best, outside = self._in_sessions
        order = np.argsort(self._sessions - values / 2)
        sums = np.add.reduceat(np.where(is_best, values[order], 0.0), starts) / 3
        spread = np.empty(len(order))
        spread[order] = np.repeat(sums, sizes)
        spread[outside] = 0.0
        return spread

    @cached_property
    def _in_sessions(self) -> tuple[NDArray[Any], ...]:
        """Where each session begins when they are sorted, how many candidates it has, which of
        the sorted are among its first three, and which candidates are outside of sessions."""
        ordered, rows = np.sort(self._sessions), len(self._sessions)
        bounds = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [rows]])
        starts, sizes = bounds[:-1], bounds[1:] - bounds[:-1]
        place = np.arange(rows) - np.repeat(starts, sizes)
        return starts, sizes, place < 3, np.flatnonzero(self._sessions < 0)


def row(step: int) -> int:
    """The row of a step in the arrays of a :class:`View`."""
    return _HERE + step


def _part(chosen: Candidates, scale: Scale) -> _Part:
    corpus, lookup = chosen.corpus, chosen.lookup
    near = _neighbours(chosen)
    there = near >= 0
    steps = np.flatnonzero(there.any(axis=1))  # typed memories have no neighbours
    some, gone = near[steps], np.nonzero(~there[steps])

    def at(values: NDArray[Number]) -> NDArray[Number]:
        known: NDArray[Number] = values.take(some)
        known[gone] = 0
        if len(steps) == len(STEPS):
            return known
        found = np.zeros(near.shape, values.dtype)
        found[steps] = known
        return found

    scaled, compared = np.zeros(near.shape), np.zeros(near.shape, np.bool_)
    if chosen.similarity is not None:
        scaled, compared = scale.of_cosine(chosen.similarity[near]), at(corpus.has_vector.view)
    return _Part(
        there,
        scale.of_words(at(lookup.words)),
        at(lookup.held),
        at(lookup.named).astype(float),
        np.where(compared, scaled, 0.0),
        at(corpus.marks.view),
        at(chosen.things.found),
        corpus.sessions.view[chosen.slots].astype(np.int64),
        corpus.lengths.view[chosen.slots],
        corpus.at.view[chosen.slots],
        chosen.cosine(),
        compared[_HERE],
    )


def _joined(parts: Sequence[_Part]) -> _Part:
    """All parts as one; the sessions of each keep to themselves."""
    first, apart = 0, []
    for part in parts:
        sessions = np.where(part.sessions < 0, -1, part.sessions + first)
        first = max(first, int(sessions.max(initial=-1)) + 1)
        apart.append(part._replace(sessions=sessions))
    return _Part(*(np.concatenate(arrays, axis=-1) for arrays in zip(*apart, strict=True)))


def _neighbours(chosen: Candidates) -> NDArray[np.intp]:
    """Slots, (steps, candidates), -1 where there is none."""
    before, after = chosen.corpus.links()
    near = np.empty((len(STEPS), len(chosen.slots)), np.intp)
    near[_HERE] = chosen.slots
    for place in range(_HERE + 1, len(STEPS)):
        near[place] = after[near[place - 1]]
    for place in reversed(range(_HERE)):
        near[place] = before[near[place + 1]]
    return near
