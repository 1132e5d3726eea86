"""An image in memory, computed on without holding others up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from muniment.evidence.corpus import Corpus
from muniment.stores.kept import BYTES_AN_IMAGE
from muniment.stores.postgres.vectors import HalfVectors

Answer = TypeVar("Answer")

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
