"""Vectors of texts met lately."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock


class RecentVectors:
    """At most `size` vectors, the least recently used one leaving first; safe across threads.

    Texts are kept as digests only, so that no erased text stays behind in memory.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._vectors: OrderedDict[bytes, Sequence[float]] = OrderedDict()
        self._lock = Lock()

    def get(self, text: str) -> Sequence[float] | None:
        key = _digest(text)
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def put(self, text: str, vector: Sequence[float]) -> None:
        key = _digest(text)
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
