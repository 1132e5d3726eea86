"""Which rows of a corpus a query may answer with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.corpus import MESSAGE, Corpus

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filters:
    """What a row must be. ``now`` and ``as_of`` are seconds since 1970.

    ``session`` and ``excluded`` keys concern messages only: a session's typed memories have an
    audience, so a corpus, of their own.
    """

    now: float
    as_of: float | None = None
    include_invalid: bool = False
    kinds: Collection[str] | None = None
    session: str | None = None
    excluded: Collection[int] = ()
    min_trust: int = 0

    def mask(self, corpus: Corpus) -> Mask:
        """True by slot where the row may be answered."""
        message = corpus.kinds.view == corpus.code("kind", MESSAGE)
        eligible = corpus.alive.view & (corpus.expires_at.view > self.now)
        eligible &= self._valid(corpus)
        if self.min_trust > 0:
            eligible &= corpus.trust.view >= self.min_trust
        if self.kinds is not None:
            eligible &= _of_kinds(corpus, self.kinds)
        if self.as_of is not None:
            eligible &= ~message | (corpus.at.view <= self.as_of)
        if self.session is not None:
            eligible &= ~message | (corpus.sessions.view == corpus.code("session", self.session))
        if self.excluded:
            eligible &= ~message | ~np.isin(corpus.keys.view, list(self.excluded))
        return eligible

    def _valid(self, corpus: Corpus) -> Mask | np.bool_:
        if self.include_invalid:
            return np.True_
        moment = self.now if self.as_of is None else self.as_of
        return (corpus.valid_from.view <= moment) & (moment < corpus.invalid_at.view)


def _of_kinds(corpus: Corpus, kinds: Collection[str]) -> Mask:
    wanted = np.zeros(corpus.codes + 1, np.bool_)  # the last stands for what has no code here, -1
    wanted[[corpus.code("kind", kind) for kind in kinds]] = True
    wanted[-1] = False
    return np.asarray(wanted[corpus.kinds.view])
