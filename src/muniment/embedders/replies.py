"""Checking what an embedding provider answered."""

from __future__ import annotations

import math
from collections.abc import Sequence

from muniment.errors import MemoryConfigurationError


def checked(
    vectors: Sequence[Sequence[float]], *, count: int, dimension: int, model_name: str
) -> list[Sequence[float]]:
    """`vectors` as they are: `count` of them, each `dimension` finite numbers.

    MemoryConfigurationError otherwise, since another dimension is another model.
    """
    if len(vectors) != count:
        raise MemoryConfigurationError(
            f"embedder {model_name}: {len(vectors)} vectors for {count} texts"
        )
    for vector in vectors:
        if len(vector) != dimension:
            raise MemoryConfigurationError(
                f"embedder {model_name}: {len(vector)} numbers a vector, not {dimension}"
            )
        if not all(map(math.isfinite, vector)):
            raise MemoryConfigurationError(f"embedder {model_name}: a vector is not finite")
    return list(vectors)
