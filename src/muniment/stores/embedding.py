"""Vectors for rows, at best effort: a row without one is found by its words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from muniment.evidence.vectors import pack_vector
from muniment.ports import MemoryEmbedder

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
        except Exception as error:
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
