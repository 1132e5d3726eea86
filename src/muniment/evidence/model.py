"""A learned ranking: a linear model over :mod:`muniment.evidence.features`, read from JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from muniment.evidence.lanes import Values

FILE = "ranking.json"

STRONGEST = 10
"""How many of the best rows stand in for what is not known of others."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """For each feature its mean and spread in training, and the weight of what is left of it."""

    names: tuple[str, ...]
    means: Values
    spreads: Values
    weights: Values

    def shares(self, features: Mapping[str, Values]) -> Values:
        """What each feature adds, (candidates, features).

        What is not known of a row (NaN) is taken as it is on average in the strongest rows of
        which all is known, so that a typed memory competes with messages by the rest.
        """
        found = np.stack([features[name] for name in self.names], axis=1)
        shares = np.asarray((found - self.means) / self.spreads * self.weights)
        unknown = np.isnan(shares)
        if unknown.any():
            whole = shares[~unknown.any(axis=1)]
            strongest = whole[np.argsort(whole.sum(axis=1), kind="stable")[-STRONGEST:]]
            shares = np.where(unknown, strongest.mean(axis=0), shares)
        return shares

    def less(self, lanes: Collection[str]) -> LinearModel:
        """The model without the features of these lanes."""
        kept = [name.partition(":")[0] not in lanes for name in self.names]
        return replace(self, weights=np.where(kept, self.weights, 0.0))

    def by_lane(self, shares: Values) -> dict[str, Values]:
        """The ``shares`` of each lane's features summed, under ``learned:`` and the lane."""
        sums: dict[str, Values] = {}
        for name, share in zip(self.names, shares.T, strict=True):
            lane = f"learned:{name.partition(':')[0]}"
            sums[lane] = sums.get(lane, np.zeros(len(share))) + share
        return sums


@cache
def learned(*, meaning: bool) -> LinearModel:
    """The model shipped with the package, for questions with or without an embedding."""
    text = files("muniment.evidence").joinpath(FILE).read_text(encoding="utf-8")
    table = json.loads(text)["models"]["words and meaning" if meaning else "words"]
    columns = np.array([table[name] for name in table], dtype=float)
    return LinearModel(tuple(table), columns[:, 0], columns[:, 1], columns[:, 2])
