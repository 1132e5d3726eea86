"""A learned ranking: a linear model over :mod:`muniment.evidence.features`, read from JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.eligibility import Mask
from muniment.evidence.features import Block, of_any_row
from muniment.evidence.view import Values

FILE = "ranking.json"

STRONGEST = 10
"""How many of the best rows stand in for what is not known of others."""


@dataclass(frozen=True)
class LinearModel:
    """For each feature its mean and spread in training, and the weight of what is left of it."""

    names: tuple[str, ...]
    means: Values
    spreads: Values
    weights: Values

    @cached_property
    def _factors(self) -> dict[str, float]:
        return dict(zip(self.names, (self.weights / self.spreads).tolist(), strict=True))

    @cached_property
    def _least(self) -> float:
        """What a row has of which every feature is 0."""
        return -float(np.sum(self.weights / self.spreads * self.means))

    @cached_property
    def _blocks(self) -> dict[tuple[str, ...], tuple[Values, Values]]:
        return {}

    def _of(self, names: tuple[str, ...]) -> tuple[Values, Values]:
        """The factors of these features, and those of features of messages alone."""
        known = self._blocks.get(names)
        if known is None:
            factors = np.array([self._factors.get(name, 0.0) for name in names])
            of_any = np.array([of_any_row(name) for name in names])
            known = self._blocks[names] = factors, factors * ~of_any
        return known

    def totals(self, blocks: Iterable[Block], messages: Mask, found: Mask) -> Values:
        """Each candidate's weighed sum; ``messages`` says which are a conversation's, ``found``
        which were found by what they hold themselves.

        What means nothing for a typed memory is taken as it is on average in the strongest of the
        messages found, so that it competes with messages by the rest.
        """
        totals, typed = np.full(len(messages), self._least), ~messages
        spoken = np.zeros(len(messages)) if typed.any() else None
        for names, values in blocks:
            every, of_messages = self._of(names)
            totals += _weighed(every, values)
            if spoken is not None:
                spoken += _weighed(of_messages, values)
        if spoken is not None:
            totals[typed] += spoken[_strongest(totals, messages, found)].mean() - spoken[typed]
        return totals

    def less(self, lanes: Collection[str]) -> LinearModel:
        """The model without the features of these lanes."""
        if not lanes:
            return self
        kept = [name.partition(":")[0] not in lanes for name in self.names]
        return replace(self, weights=np.where(kept, self.weights, 0.0))

    def by_lane(
        self, blocks: Iterable[Block], messages: Mask, found: Mask, totals: Values
    ) -> dict[str, Values]:
        """What the features of each lane add to the ``totals``, under ``learned:`` and the lane."""
        means = dict(zip(self.names, self.means.tolist(), strict=True))
        strongest, lanes = _strongest(totals, messages, found), dict[str, Values]()
        for names, values in blocks:
            factors, _ = self._of(names)
            for place, name in enumerate(names):
                added = factors[place] * (values[place] - means.get(name, 0.0))
                if not of_any_row(name):
                    added[~messages] = added[strongest].mean()
                lane = f"learned:{name.partition(':')[0]}"
                lanes[lane] = lanes.get(lane, 0.0) + added
        return lanes


def _weighed(factors: Values, values: Values) -> Values:
    # Not `@`, which would spread so little work over all cores and wait for the slowest.
    return np.asarray(np.einsum("i,ij->j", factors, values))


def _strongest(totals: Values, messages: Mask, found: Mask) -> NDArray[np.intp]:
    spoken = np.flatnonzero(messages & found if (messages & found).any() else messages)
    return spoken[np.argsort(totals[spoken], kind="stable")[-STRONGEST:]]


@cache
def learned(*, meaning: bool) -> LinearModel:
    """The model shipped with the package, for questions with or without an embedding."""
    text = files("muniment.evidence").joinpath(FILE).read_text(encoding="utf-8")
    table = json.loads(text)["models"]["words and meaning" if meaning else "words"]
    columns = np.array([table[name] for name in table], dtype=float)
    return LinearModel(tuple(table), columns[:, 0], columns[:, 1], columns[:, 2])
