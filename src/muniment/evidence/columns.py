"""Growing arrays: one column of a corpus, with room to spare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LEAST_ROOM = 64


class Column:
    """An array that grows by a quarter; ``view`` is the part in use (rows first), to be read.

    It takes no room while every value is the fill.
    """

    def __init__(self, dtype: str, width: int | None = None, *, fill: float = 0) -> None:
        self._shape = () if width is None else (width,)
        self._fill = np.full(self._shape, fill, dtype=dtype)
        self._length = 0
        self._array: NDArray[Any] | None = None
        self._view = np.broadcast_to(self._fill, (0, *self._shape))

    @property
    def view(self) -> NDArray[Any]:
        return self._view if self._array is None else self._array[: self._length]

    @property
    def nbytes(self) -> int:
        """The memory that the values take."""
        return 0 if self._array is None else self._array.nbytes

    def grow(self, length: int) -> None:
        """Lengthen to ``length`` rows, the new ones filled."""
        if length <= self._length:
            return
        if self._array is None:
            self._view = np.broadcast_to(self._fill, (length, *self._shape))
        elif length > len(self._array):
            self._array = self._filled(max(length, self._length * 5 // 4, _LEAST_ROOM))
        self._length = length

    def put(self, place: slice | NDArray[np.integer] | int, values: ArrayLike) -> None:
        """Write the rows at ``place``."""
        given = np.asarray(values, self._fill.dtype)
        if self._array is None:
            if (given == self._fill).all():
                return
            self._array = self._filled(self._length)
        self._array[place] = given

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows, in this order."""
        if self._array is None:
            self._view = self._view[: len(rows)]
        else:
            self._array = self._array[rows]
        self._length = len(rows)

    def _filled(self, room: int) -> NDArray[Any]:
        larger = np.full((room, *self._shape), self._fill, dtype=self._fill.dtype)
        if self._array is not None:
            larger[: self._length] = self.view
        return larger
