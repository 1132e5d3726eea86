"""Candidates for a question, from several corpora, and the evidence for them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import Corpus
from muniment.evidence.eligibility import Filters, Mask
from muniment.evidence.features import Asked, Block, features
from muniment.evidence.lookup import Lookup, look_up
from muniment.evidence.query import Question
from muniment.evidence.things import Things, look_for_things
from muniment.evidence.vectors import unit
from muniment.evidence.view import Candidates, Rarities, Scale, Values, View
from muniment.lexical.dates import Span, spans_of

MOST_CANDIDATES = 1_000
"""Rows whose evidence is weighed, at most, of all corpora together: half of them the best by
words, half the best by meaning."""

THING = 0.25
"""What a thing of the kind asked for counts beside a word of the question, in choosing rows."""


class Gathered:
    """The candidates of each corpus; every array below runs over them in that order."""

    def __init__(
        self,
        chosen: Sequence[Candidates],
        idf: Values,
        question: Question,
        spans: Sequence[Span] = (),
    ) -> None:
        self.chosen = tuple(chosen)
        self.asked = Asked(question, spans, self.has_meaning())
        self._idf = idf

    def __len__(self) -> int:
        return sum(len(part.slots) for part in self.chosen)

    def has_meaning(self) -> bool:
        """Whether there was an embedding to compare anywhere."""
        return any(part.similarity is not None for part in self.chosen)

    def has_messages(self) -> bool:
        """Whether any candidate is a conversation's message."""
        return bool(self.are_messages.any())

    @cached_property
    def are_messages(self) -> NDArray[np.bool_]:
        """Which candidates are messages of a conversation."""
        return np.concatenate([part.are_messages() for part in self.chosen])

    @cached_property
    def view(self) -> View:
        """The candidates with the messages around them; it does not change when the corpora do."""
        return View(self.chosen, Rarities(self._idf), Scale.of(self.chosen))

    def features(self) -> Iterator[Block]:
        """Every feature there is for this question (see :mod:`muniment.evidence.features`)."""
        return features(self.view, self.asked)

    def corpora(self) -> NDArray[np.int64]:
        """The place of each candidate's corpus."""
        sizes = [len(part.slots) for part in self.chosen]
        return np.repeat([part.place for part in self.chosen], sizes)

    def values(self, column: str) -> NDArray[Any]:
        """What each candidate has in this column of its corpus."""
        return np.concatenate(
            [getattr(part.corpus, column).view[part.slots] for part in self.chosen]
        )


def gather(
    corpora: Sequence[Corpus],
    question: Question,
    *,
    embedding: Sequence[float] | None,
    filters: Filters,
) -> Gathered:
    """The rows worth weighing: those that share a word, and those close in meaning."""
    present = [place for place, corpus in enumerate(corpora) if len(corpus)]
    corpora = [corpora[place] for place in present]
    # First: it reads every vector, which pushes all else out of the processor's cache.
    asked = None if embedding is None else unit(embedding)
    near = [None if asked is None else corpus.similarity(asked) for corpus in corpora]
    lookups, idf = look_up(corpora, question)
    things = look_for_things(corpora, question)
    masks = [filters.mask(corpus) for corpus in corpora]
    slots = _chosen(corpora, lookups, things, masks, near)
    parts = zip(corpora, lookups, things, slots, near, present, strict=True)
    chosen = tuple(starmap(Candidates, parts))
    return Gathered(chosen, idf, question, _spans(chosen, question, filters))


def _spans(chosen: Sequence[Candidates], question: Question, filters: Filters) -> tuple[Span, ...]:
    times = [part.corpus.at.view[part.slots] for part in chosen if len(part.slots)]
    if not question.times or not times:
        return ()
    first, last = min(float(at.min()) for at in times), max(float(at.max()) for at in times)
    years = range(*(datetime.fromtimestamp(at, UTC).year + n for n, at in enumerate((first, last))))
    now = filters.now if filters.as_of is None else filters.as_of
    return spans_of(question.times, now=now, years=years)


def _chosen(
    corpora: Sequence[Corpus],
    lookups: Sequence[Lookup],
    things: Sequence[Things],
    masks: Sequence[Mask],
    near: Sequence[NDArray[np.float32] | None],
) -> list[NDArray[np.intp]]:
    """The best by words and the best by meaning, half of :data:`MOST_CANDIDATES` each."""
    wordings = [
        lookup.words + np.float32(THING) * own.found
        for lookup, own in zip(lookups, things, strict=True)
    ]
    worded = [mask & (wording > 0) for mask, wording in zip(masks, wordings, strict=True)]
    by_words = _best(corpora, wordings, worded)
    known = [
        np.zeros_like(mask) if cosine is None else mask & corpus.has_vector.view
        for corpus, cosine, mask in zip(corpora, near, masks, strict=True)
    ]
    by_meaning = _best(
        corpora, [w if n is None else n for w, n in zip(wordings, near, strict=True)], known
    )
    return [_either(*both) for both in zip(corpora, by_words, by_meaning, strict=True)]


def _best(
    corpora: Sequence[Corpus], values: Sequence[NDArray[np.float32]], allowed: Sequence[Mask]
) -> list[NDArray[np.intp]]:
    """The slots of the greatest values of all corpora together; of equals the newest."""
    slots = [np.flatnonzero(mask) for mask in allowed]
    most = MOST_CANDIDATES // 2
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


def _either(corpus: Corpus, one: NDArray[np.intp], other: NDArray[np.intp]) -> NDArray[np.intp]:
    chosen = np.zeros(corpus.size, np.bool_)
    chosen[one] = True
    chosen[other] = True
    return np.flatnonzero(chosen)
