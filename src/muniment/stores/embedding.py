"""Vectors for rows, at best effort: a row without one is found by its words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from muniment.context.guarded import cancelled_from_outside
from muniment.errors import MemoryStoreError
from muniment.evidence.vectors import pack_vector
from muniment.ports import MemoryEmbedder

T = TypeVar("T")

DEFAULT_TIMEOUT_SECONDS = 10.0
_BATCH = 64
_log = logging.getLogger(__name__)


class Embedded(NamedTuple):
    """A row's packed vector, None without one; `given` by the caller, who hears if it does not
    fit.
    """

    vector: bytes | None
    given: bool = False


class RowEmbedder:
    """Packed vectors of texts, None where there is no embedder or it failed or hung."""

    def __init__(
        self,
        embedder: MemoryEmbedder | None,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self._embedder = embedder
        self._timeout = timeout_seconds
        self.present = embedder is not None
        """There is an embedder to ask."""

    async def one(self, text: str) -> bytes | None:
        """The vector of one text."""
        return (await self.many([text]))[0]

    async def for_text(self, text: str, given: Sequence[float] | None) -> Embedded:
        """The vector that the caller made of a text, else the embedder's."""
        if given is not None:
            return Embedded(pack_vector(given), given=True)
        return Embedded(await self.one(text))

    async def many(self, texts: Sequence[str]) -> list[bytes | None]:
        """One answer a text, in order; a batch that fails leaves its texts without."""
        vectors: list[bytes | None] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await self._guarded(texts[start : start + _BATCH])
        return vectors

    async def _guarded(self, texts: Sequence[str]) -> list[bytes | None]:
        if self._embedder is None:
            return [None] * len(texts)
        try:
            async with asyncio.timeout(self._timeout):
                answers = await self._asked(self._embedder, texts)
            return [pack_vector(answer) for _, answer in zip(texts, answers, strict=True)]
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and cancelled_from_outside():
                raise
            _log.warning(
                "embedding failed; rows stay pending",
                extra={"error": type(error).__name__, "rows": len(texts)},
            )
            return [None] * len(texts)

    @staticmethod
    async def _asked(embedder: MemoryEmbedder, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        batch: Any = getattr(embedder, "embed_batch", None)
        if batch is None:
            return [await embedder(text) for text in texts]
        answers: Sequence[Sequence[float]] = await batch(list(texts))
        return answers


class MixedEmbeddings(MemoryStoreError):
    """A vector cannot be compared with those stored."""


def comparable(values: Sequence[float] | None, width: int | None) -> Sequence[float] | None:
    """A query's embedding, None where nothing is stored that it could be compared with.

    MixedEmbeddings where what is stored is of another dimension.
    """
    if values is None or width is None:
        return None
    if len(values) != width:
        raise mixed(f"of {len(values)} dimensions")
    return values


def mixed(what: str) -> MixedEmbeddings:
    """The error for embeddings of another model or dimension than those stored."""
    return MixedEmbeddings(
        f"embeddings {what} cannot be compared with those stored: open the store with the "
        "embedder it was made with, or without one, or run reindex with the new one"
    )


async def in_words_at_least(
    ask: Callable[[Sequence[float] | None], Awaitable[T]], embedding: Sequence[float] | None
) -> T:
    """What `ask` finds with the embedding; without it, with a WARNING, where that is of another
    dimension than what is stored.

    An embedder that turned to another dimension must not make memory empty.
    """
    try:
        return await ask(embedding)
    except MixedEmbeddings:
        _log.warning("the embedder gives another dimension than is stored; found by words alone")
        return await ask(None)
