"""Any endpoint that speaks OpenAI's embeddings protocol (extra `openai`)."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.embedders.replies import checked
from muniment.errors import MemoryConfigurationError
from muniment.extras import missing_extra

try:
    from openai import AsyncOpenAI
    from openai.types import CreateEmbeddingResponse
except ModuleNotFoundError as error:
    raise missing_extra("openai") from error


class OpenAIEmbedder:
    """`model` at the endpoint of `client`; vectors of `dimension` numbers as the model gives them.

    Texts travel in requests of at most `batch_size`. `shorten` asks the endpoint for
    `dimension` numbers, which models with a native dimension of their own refuse. Errors are
    those of the `openai` client, and MemoryConfigurationError for an unusable answer.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        *,
        model: str,
        dimension: int,
        batch_size: int = 128,
        shorten: bool = False,
    ) -> None:
        if dimension < 1 or batch_size < 1:
            raise MemoryConfigurationError("dimension and batch_size: must be at least 1")
        self.model_name = model
        self.dimension = dimension
        self._client = client
        self._batch_size = batch_size
        self._shorten = shorten

    async def __call__(self, text: str) -> Sequence[float]:
        """The vector of `text`."""
        (vector,) = await self.embed_batch([text])
        return vector

    async def embed_batch(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, in the order given."""
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), self._batch_size):
            vectors += await self._request(texts[start : start + self._batch_size])
        return vectors

    async def _request(self, texts: Sequence[str]) -> list[Sequence[float]]:
        reply = await self._ask(list(texts))
        # Rubbish that parses as JSON gets through the client without its fields.
        rows = sorted(getattr(reply, "data", None) or [], key=lambda row: row.index)
        return checked(
            [row.embedding for row in rows],
            count=len(texts),
            dimension=self.dimension,
            model_name=self.model_name,
        )

    async def _ask(self, texts: list[str]) -> CreateEmbeddingResponse:
        # Plain floats: not every compatible endpoint knows the client's base64 default.
        create = self._client.embeddings.create
        if self._shorten:
            return await create(
                model=self.model_name,
                input=texts,
                encoding_format="float",
                dimensions=self.dimension,
            )
        return await create(model=self.model_name, input=texts, encoding_format="float")
