"""A learned ranking: a linear model over :mod:`muniment.evidence.features`, read from JSON."""

from __future__ import annotations

import json
from collections.abc import Collection
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

    def shares(self, found: Values) -> Values:
        """What each feature adds, (features, candidates), written over ``found``, whose rows are
        in the order of the names.

        What is not known of a row (NaN) is taken as it is on average in the strongest rows of
        which all is known, so that a typed memory competes with messages by the rest.
        """
        factors = self.weights / self.spreads
        shares = np.multiply(found, factors[:, None], out=found)
        shares -= (self.means * factors)[:, None]
        if np.isnan(shares.sum()):
            unknown = np.isnan(shares)
            whole = shares[:, ~unknown.any(axis=0)]
            strongest = whole[:, np.argsort(whole.sum(axis=0), kind="stable")[-STRONGEST:]]
            shares = np.where(unknown, strongest.mean(axis=1)[:, None], shares)
        return shares

    def less(self, lanes: Collection[str]) -> LinearModel:
        """The model without the features of these lanes."""
        if not lanes:
            return self
        kept = [name.partition(":")[0] not in lanes for name in self.names]
        return replace(self, weights=np.where(kept, self.weights, 0.0))

    def by_lane(self, shares: Values) -> dict[str, Values]:
        """The ``shares`` of each lane's features summed, under ``learned:`` and the lane."""
        return {
            f"learned:{lane}": shares[rows].sum(axis=0)
            for lane, rows in _rows_by_lane(self.names).items()
        }


@cache
def _rows_by_lane(names: tuple[str, ...]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name.partition(":")[0], []).append(row)
    return rows


@cache
def learned(*, meaning: bool) -> LinearModel:
    """The model shipped with the package, for questions with or without an embedding."""
    text = files("muniment.evidence").joinpath(FILE).read_text(encoding="utf-8")
    table = json.loads(text)["models"]["words and meaning" if meaning else "words"]
    columns = np.array([table[name] for name in table], dtype=float)
    return LinearModel(tuple(table), columns[:, 0], columns[:, 1], columns[:, 2])
