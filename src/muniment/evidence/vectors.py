"""Embeddings as stored bytes: little-endian 32-bit floats of unit length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.columns import Column

Floats = NDArray[np.float32]
Slots = NDArray[np.integer]

_STEPS = 127.0
_BLOCK_ROWS = 128  # few enough to stay in a processor's cache as floats


def pack_vector(values: Sequence[float]) -> bytes:
    """``values`` brought to unit length, as bytes to store; a zero vector stays zero."""
    return unit(values).astype("<f4").tobytes()


def unpack_vector(stored: bytes) -> Floats:
    """The vector of :func:`pack_vector`; the answer is read-only."""
    return np.frombuffer(stored, dtype="<f4")


def unit(values: Sequence[float]) -> Floats:
    """``values`` as floats of unit length; what is not finite counts as zero."""
    vector = np.asarray(values, dtype=np.float64)
    if not np.isfinite(vector).all():
        vector = np.nan_to_num(vector, posinf=0.0, neginf=0.0)
    with np.errstate(over="ignore"):
        length = float(np.sqrt(vector @ vector))
    if not np.isfinite(length):  # the squares are beyond a float
        return unit(vector / np.abs(vector).max())
    return (vector / length if length else vector).astype(np.float32)


class Vectors(ABC):
    """The vectors of a corpus by slot, of as many numbers as ``stored`` has; zeros where none is.

    ``stored_bytes`` is how long each is in the form in which a store has it, ``width`` how many
    numbers that is.
    """

    def __init__(self, stored: bytes) -> None:
        self.stored_bytes = len(stored)
        self.width = self.unpack([stored]).shape[1]

    @staticmethod
    def unpack(stored: Sequence[bytes]) -> Floats:
        """Vectors as a store has them, all equally long, as rows of numbers."""
        return unpack_vector(b"".join(stored)).reshape(len(stored), -1)

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """What they are kept in."""

    @abstractmethod
    def write(self, slots: Slots, vectors: Floats) -> None:
        """Keep ``vectors``, (slots, width), of unit length or zero."""

    @abstractmethod
    def similarity(self, asked: Floats) -> Floats:
        """The dot product of each slot's vector and ``asked``."""

    def put(self, slots: Slots, stored: Sequence[bytes]) -> None:
        """Keep vectors as a store has them."""
        for first in range(0, len(stored), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            self.write(slots[block], self.unpack(stored[block]))

    def clear(self, slots: Slots) -> None:
        """Forget these slots' vectors."""
        self.write(slots, np.zeros((len(slots), self.width), np.float32))


class FloatVectors(Vectors):
    """Vectors as they are: four bytes a number."""

    def __init__(self, stored: bytes) -> None:
        super().__init__(stored)
        self._floats = Column("float32", self.width)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self._floats,)

    def write(self, slots: Slots, vectors: Floats) -> None:
        self._floats.put(slots, vectors)

    def similarity(self, asked: Floats) -> Floats:
        # A dot product a row runs at memory speed on one thread. A product of matrices would
        # spread over all cores and wait for the slowest: 20 times slower on a busy machine.
        return np.asarray(np.vecdot(self._floats.view, asked))


class ByteVectors(Vectors):
    """Vectors of one byte a number, in steps of a 127th of the row's greatest.

    A similarity is within .002 of the exact one (.0004 on average, at 384 numbers).
    """

    def __init__(self, stored: bytes) -> None:
        super().__init__(stored)
        self._bytes, self._steps = Column("int8", self.width), Column("float32")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._bytes, self._steps

    def write(self, slots: Slots, vectors: Floats) -> None:
        steps = np.maximum(vectors.max(axis=1), -vectors.min(axis=1)) / np.float32(_STEPS)
        scaled = vectors / np.where(steps > 0, steps, np.float32(1))[:, None]
        self._bytes.put(slots, np.rint(scaled, out=scaled).astype(np.int8))
        self._steps.put(slots, steps)

    def similarity(self, asked: Floats) -> Floats:
        numbers = self._bytes.view
        found = np.empty(len(numbers), np.float32)
        block = np.empty((min(len(numbers), _BLOCK_ROWS), self.width), np.float32)
        for first in range(0, len(numbers), _BLOCK_ROWS):
            part = numbers[first : first + _BLOCK_ROWS]
            floats = block[: len(part)]
            np.copyto(floats, part)
            np.vecdot(floats, asked, out=found[first : first + len(part)])
        found *= self._steps.view
        return found
