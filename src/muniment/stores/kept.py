"""Images in memory, by key: kept while they are used and fit into a budget."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

BYTES_AN_IMAGE = 4_096
"""What an image takes beside its rows, about."""


class Sized(Protocol):
    """What knows the memory that it takes."""

    @property
    def nbytes(self) -> int: ...


Key = TypeVar("Key")
SomeImage = TypeVar("SomeImage", bound=Sized)


class Kept(Generic[Key, SomeImage]):
    """Images by key, least recently used first out when they take more than the budget (bytes).

    For use by several threads. What an answer costs here does not grow with the number of images.
    """

    def __init__(self, make: Callable[[], SomeImage], budget_bytes: int) -> None:
        self._make = make
        self._budget = budget_bytes
        self._images: OrderedDict[Key, SomeImage] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._lock = threading.Lock()
        self._nbytes = 0

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[Key]:
        with self._lock:
            return iter(list(self._images))

    @property
    def nbytes(self) -> int:
        """The memory that all of them take."""
        return self._nbytes

    def image(self, key: Key) -> SomeImage:
        """The image of this key; a new one is empty."""
        with self._lock:
            image = self._images.get(key)
            if image is None:
                image = self._images[key] = self._make()
                self._measure(key, image)
            self._images.move_to_end(key)
            return image

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop these; unknown keys are passed over."""
        dropped = list(keys)  # which may be the images themselves
        with self._lock:
            for key in dropped:
                self._forget(key)

    def drop(self) -> None:
        """Forget every image."""
        self.forget(self)

    def fit(self, changed: Key) -> None:
        """Drop the least recently used until the rest fits, now that this one has changed."""
        with self._lock:
            image = self._images.get(changed)
            if image is not None:
                self._measure(changed, image)
            while self._nbytes > self._budget and len(self._images) > 1:
                self._forget(next(iter(self._images)))

    def _forget(self, key: Key) -> None:
        if self._images.pop(key, None) is not None:
            self._nbytes -= self._sizes.pop(key)

    def _measure(self, key: Key, image: SomeImage) -> None:
        size = image.nbytes
        self._nbytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
