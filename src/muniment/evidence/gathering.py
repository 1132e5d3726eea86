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
from muniment.evidence.eligibility import Filters
from muniment.evidence.features import Asked, Block, features
from muniment.evidence.lookup import look_up
from muniment.evidence.query import Question
from muniment.evidence.shortlist import shortlist
from muniment.evidence.things import look_for_things
from muniment.evidence.vectors import unit
from muniment.evidence.view import Candidates, Rarities, Scale, Values, View
from muniment.lexical.dates import Span, spans_of


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
    around: bool = True,
) -> Gathered:
    """The rows worth weighing, by their words and meaning and, with ``around``, those of the
    messages beside them (see :mod:`muniment.evidence.shortlist`)."""
    present = [place for place, corpus in enumerate(corpora) if len(corpus)]
    corpora = [corpora[place] for place in present]
    # First: it reads every vector, which pushes all else out of the processor's cache.
    asked = None if embedding is None else unit(embedding)
    near = [None if asked is None else corpus.similarity(asked) for corpus in corpora]
    lookups, idf = look_up(corpora, question)
    things = look_for_things(corpora, question)
    masks = [filters.mask(corpus) for corpus in corpora]
    slots = shortlist(corpora, lookups, things, masks, near, around=around)
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
