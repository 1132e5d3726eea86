"""Any LangChain `Embeddings` (extra `langchain`)."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.embedders.replies import checked
from muniment.extras import missing_extra

try:
    from langchain_core.embeddings import Embeddings
except ModuleNotFoundError as error:
    raise missing_extra("langchain") from error


class LangChainEmbedder:
    """`embeddings` under the name and dimension that the store records.

    Every text is embedded as a document, questions too, so that one text has one vector
    whoever embeds it.
    """

    def __init__(self, embeddings: Embeddings, *, model_name: str, dimension: int) -> None:
        self.model_name = model_name
        self.dimension = dimension
        self._embeddings = embeddings

    async def __call__(self, text: str) -> Sequence[float]:
        """The vector of `text`."""
        (vector,) = await self.embed_batch([text])
        return vector

    async def embed_batch(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, in the order given."""
        vectors = await self._embeddings.aembed_documents(list(texts))
        return checked(
            vectors, count=len(texts), dimension=self.dimension, model_name=self.model_name
        )
