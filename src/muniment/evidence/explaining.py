"""Why rows rank as they do, worked out for those who ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.view import Values

Places = NDArray[np.intp]
Explain = Callable[[Places], dict[str, Values]]
"""What a ranking has to tell of the candidates at these places."""


class Told:
    """The lanes of all candidates that were ranked, and what the ranking itself tells of those
    ``chosen``. Nothing in it changes when the corpora do."""

    def __init__(
        self, lanes: Callable[[], dict[str, Values]], chosen: Places, explain: Explain
    ) -> None:
        self._lanes, self._chosen, self._explain = lanes, chosen, explain

    @cached_property
    def columns(self) -> dict[str, list[float]]:
        """By name, a number for each of the chosen."""
        lanes = {name: values[self._chosen] for name, values in self._lanes().items()}
        every = lanes | self._explain(self._chosen)
        return {name: values.tolist() for name, values in every.items()}


class Lanes(Mapping[str, float]):
    """The lanes of the row at ``place`` among the chosen; most callers never look."""

    __slots__ = ("_place", "_told")

    def __init__(self, told: Told, place: int) -> None:
        self._told, self._place = told, place

    def __getitem__(self, name: str) -> float:
        return self._told.columns[name][self._place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._told.columns)

    def __len__(self) -> int:
        return len(self._told.columns)

    def __repr__(self) -> str:
        return repr(dict(self))
