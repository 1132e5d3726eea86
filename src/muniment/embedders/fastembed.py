"""Models of `fastembed` (extra `fastembed`), which come from a hub on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from muniment.embedders.replies import checked
from muniment.extras import missing_extra

try:
    from fastembed import TextEmbedding
except ModuleNotFoundError as error:
    raise missing_extra("fastembed") from error


class FastEmbedEmbedder:
    """A loaded `TextEmbedding`; runs in worker threads.

    Every text is embedded as a document, questions too, so that one text has one vector
    whoever embeds it.
    """

    def __init__(self, model: TextEmbedding) -> None:
        self.model_name = model.model_name
        self.dimension = int(model.embedding_size)
        self._model = model

    async def __call__(self, text: str) -> Sequence[float]:
        """The vector of `text`."""
        (vector,) = await self.embed_batch([text])
        return vector

    async def embed_batch(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, in the order given."""
        vectors = await asyncio.to_thread(self._embed, list(texts))
        return checked(
            vectors, count=len(texts), dimension=self.dimension, model_name=self.model_name
        )

    def _embed(self, texts: list[str]) -> list[Sequence[float]]:
        return [vector.tolist() for vector in self._model.embed(texts)]
