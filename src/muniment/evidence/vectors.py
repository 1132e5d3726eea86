"""Embeddings as stored bytes: little-endian 32-bit floats of unit length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def pack_vector(values: Sequence[float]) -> bytes:
    """``values`` brought to unit length, as bytes to store; a zero vector stays zero."""
    return unit(values).astype("<f4").tobytes()


def unpack_vector(stored: bytes) -> Floats:
    """The vector of :func:`pack_vector`; the answer is read-only."""
    return np.frombuffer(stored, dtype="<f4")


def unit(values: Sequence[float]) -> Floats:
    """``values`` as floats of unit length; what is not finite counts as zero."""
    vector = np.nan_to_num(np.asarray(values, dtype=np.float64), posinf=0.0, neginf=0.0)
    length = float(np.sqrt(vector @ vector))
    return (vector / length if length else vector).astype(np.float32)
