"""Growing arrays: one column of a corpus, with room to spare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Column:
    """An array that grows by doubling; ``view`` is the part in use (rows first)."""

    def __init__(self, dtype: str, width: int | None = None, *, fill: float = 0) -> None:
        self._shape = () if width is None else (width,)
        self._fill = fill
        self._length = 0
        self._array: NDArray[Any] = np.full((0, *self._shape), fill, dtype=dtype)

    @property
    def view(self) -> NDArray[Any]:
        return self._array[: self._length]

    def grow(self, length: int) -> None:
        """Lengthen to ``length`` rows, the new ones filled."""
        if length > len(self._array):
            room = max(length, 2 * len(self._array), 64)
            larger = np.full((room, *self._shape), self._fill, dtype=self._array.dtype)
            larger[: self._length] = self.view
            self._array = larger
        self._length = max(self._length, length)

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows, in this order."""
        self._array = self.view[rows].copy()
        self._length = len(rows)
