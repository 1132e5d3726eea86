"""Images in memory: kept while they are used, and computed on without holding others up."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from muniment.evidence.corpus import Corpus
from muniment.stores.postgres.vectors import HalfVectors

Answer = TypeVar("Answer")
Key = TypeVar("Key")

BYTES_AN_IMAGE = 4_096
"""What an image takes beside its rows, about."""

_AT_ONCE = 2_000
"""Rows that are computed on at once: in a thread they would take longer than a turn of the loop,
waiting for the interpreter."""


@dataclass(slots=True)
class Image:
    """A corpus, the memory that it takes, and the locks of who refreshes and who reads it."""

    corpus: Corpus = field(default_factory=partial(Corpus, HalfVectors))
    nbytes: int = BYTES_AN_IMAGE
    refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading: threading.Lock = field(default_factory=threading.Lock)

    async def change(self, rows: int, work: Callable[[Corpus], None]) -> None:
        """Let `work` bring `rows` rows into the corpus."""
        await computed([self], lambda corpora: work(corpora[0]), more=rows)
        self.nbytes = self.corpus.nbytes + BYTES_AN_IMAGE


SomeImage = TypeVar("SomeImage", bound=Image)


class Kept(Generic[Key, SomeImage]):
    """Images by key, least recently used first out when they take more than the budget (bytes)."""

    def __init__(self, make: Callable[[], SomeImage], budget_bytes: int) -> None:
        self._make = make
        self._budget = budget_bytes
        self._images: OrderedDict[Key, SomeImage] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self.nbytes = 0
        """The memory that all of them take."""

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._images))

    def image(self, key: Key) -> SomeImage:
        """The image of this key; a new one is empty."""
        image = self._images.get(key)
        if image is None:
            image = self._images[key] = self._make()
            self._measure(key, image.nbytes)
        self._images.move_to_end(key)
        return image

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop these; unknown keys are passed over."""
        for key in keys:
            if self._images.pop(key, None) is not None:
                self.nbytes -= self._sizes.pop(key)

    def drop(self) -> None:
        """Forget every image."""
        self.forget(self)

    def fit(self, changed: Key) -> None:
        """Drop the least recently used until the rest fits, now that this one has changed."""
        if changed in self._images:
            self._measure(changed, self._images[changed].nbytes)
        while self.nbytes > self._budget and len(self._images) > 1:
            self.forget([next(iter(self._images))])

    def _measure(self, key: Key, size: int) -> None:
        self.nbytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size


async def computed(
    images: Sequence[Image], work: Callable[[list[Corpus]], Answer], *, more: int = 0
) -> Answer:
    """What `work` makes of the images' corpora, to which it adds `more` rows.

    A few rows are computed on here and now, many in a thread, so that the event loop goes on.
    """
    rows = more + sum(len(image.corpus) for image in images)
    if rows > _AT_ONCE or any(image.reading.locked() for image in images):
        return await asyncio.to_thread(_locked, images, work)
    return _locked(images, work)


def _locked(images: Sequence[Image], work: Callable[[list[Corpus]], Answer]) -> Answer:
    with ExitStack() as locks:
        for image in sorted(images, key=id):  # one order for everybody
            locks.enter_context(image.reading)
        return work([image.corpus for image in images])


_MICROS = 1_000_000


def seconds(column: Sequence[int | None], absent: float) -> list[float]:
    """Microseconds as seconds, `absent` where there is nothing."""
    return [absent if at is None else at / _MICROS for at in column]
