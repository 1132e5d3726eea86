"""Texts and embeddings to fill a store with: made from a seed, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

DIMENSIONS = 384
COMMON = ("garden", "coffee", "train", "music", "letter")
"""Words that about one text in eight holds, each."""

_SYLLABLES = "ba ce di fo gu ha ki lo mu ne pa ri so tu va we xa yo zi dra sto pli gre"
_FILLERS = "the a with and on in for that my our his her was is to of at from this some"
_TOPICS = 60


class Texts:
    """Sentences of 60 to 100 bytes over 8,000 words of falling frequency.

    Vectors are of unit length and gather round 60 topics, as embeddings of real texts do.
    """

    def __init__(self, seed: int = 7) -> None:
        self._random = Random(seed)
        self._numbers = np.random.default_rng(seed)
        names = Random(1)
        self._words = ["".join(names.choices(_SYLLABLES.split(), k=3)) for _ in range(8_000)]
        self._weights = [1 / (rank + 20) for rank in range(len(self._words))]
        self._topics = np.random.default_rng(1).normal(size=(_TOPICS, DIMENSIONS))

    def sentences(self, count: int) -> list[str]:
        """`count` sentences."""
        return [self.sentence() for _ in range(count)]

    def sentence(self) -> str:
        """One sentence."""
        random = self._random
        words = random.choices(self._words, self._weights, k=6)
        words += random.choices(_FILLERS.split(), k=5)
        words += [word for word in COMMON if random.random() < 0.125]
        random.shuffle(words)
        return f"{' '.join(words).capitalize()}."

    def questions(self, count: int) -> list[str]:
        """Questions of three rare words and a common one."""
        random = self._random
        picked = (random.choices(self._words, self._weights, k=3) for _ in range(count))
        return [f"When did the {a} {b} with the {c} {random.choice(COMMON)}?" for a, b, c in picked]

    def vectors(self, count: int) -> np.ndarray:
        """`count` unit vectors, float32."""
        topics = self._topics[self._numbers.integers(0, _TOPICS, count)]
        found = topics + self._numbers.normal(size=(count, DIMENSIONS)) * 1.2
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found, dtype=np.float32)


class StubEmbedder:
    """An embedder that costs nothing: it hands out ready vectors in turn."""

    name = "stub"
    dimension = DIMENSIONS

    def __init__(self, seed: int = 11, ready: int = 512) -> None:
        self._ready = [tuple(map(float, row)) for row in Texts(seed).vectors(ready)]
        self._given = 0

    async def __call__(self, _text: str) -> tuple[float, ...]:
        """The next vector, whatever the text."""
        self._given += 1
        return self._ready[self._given % len(self._ready)]


def chunks(count: int, size: int) -> Iterator[range]:
    """Ranges of at most `size` that cover `count`."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))
