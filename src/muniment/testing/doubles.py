"""Stand-ins for time and for a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = datetime(2026, 3, 10, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> datetime:
        """Move by a `timedelta` given in its keywords, backwards too."""
        self.now += timedelta(**by)
        return self.now


class HashingEmbedder:
    """Vectors from words: texts that share words are near. `fail` makes every call raise."""

    model_name = "hashing"

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.fail = False

    async def __call__(self, text: str) -> Sequence[float]:
        if self.fail:
            raise ConnectionError("the embedder is away")
        vector = [0.0] * self.dimensions
        for word in text.casefold().split():
            digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
            vector[int.from_bytes(digest, "big") % self.dimensions] += 1.0
        return vector
