"""Embedders of other providers, asked through their real clients."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest
from fastembed import TextEmbedding
from langchain_core.embeddings import DeterministicFakeEmbedding
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI

from muniment.embedders.fastembed import FastEmbedEmbedder
from muniment.embedders.langchain import LangChainEmbedder
from muniment.embedders.openai import OpenAIEmbedder
from muniment.errors import MemoryConfigurationError
from tests.doubles.openai_server import (
    OpenAIServer,
    busy,
    cut,
    derived_vector,
    embeddings,
    hang,
    raw,
    status,
)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer.running() as running:
        yield running


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as opened:
        yield opened


def row(index: int, vector: list[float]) -> dict[str, object]:
    return {"object": "embedding", "index": index, "embedding": vector}


async def test_a_text_gets_the_vector_that_the_endpoint_gives(
    server: OpenAIServer, client: AsyncOpenAI
) -> None:
    embedder = OpenAIEmbedder(client, model="m", dimension=8)
    assert list(await embedder("tea")) == pytest.approx(derived_vector("tea", 8))
    assert server.requests[0].headers["authorization"] == "Bearer k"
    assert "dimensions" not in server.requests[0].body


async def test_a_batch_travels_in_bounded_requests_and_keeps_its_order(
    server: OpenAIServer, client: AsyncOpenAI
) -> None:
    embedder = OpenAIEmbedder(client, model="m", dimension=8, batch_size=2)
    vectors = await embedder.embed_batch(["a", "b", "c"])
    assert [list(v) for v in vectors] == [pytest.approx(derived_vector(t, 8)) for t in "abc"]
    assert [request.body["input"] for request in server.requests] == [["a", "b"], ["c"]]


async def test_an_empty_batch_asks_nobody(server: OpenAIServer, client: AsyncOpenAI) -> None:
    assert await OpenAIEmbedder(client, model="m", dimension=8).embed_batch([]) == []
    assert server.requests == []


async def test_a_shortened_dimension_is_asked_for(
    server: OpenAIServer, client: AsyncOpenAI
) -> None:
    await OpenAIEmbedder(client, model="m", dimension=8, shorten=True)("tea")
    assert server.requests[0].body["dimensions"] == 8


async def test_rows_out_of_order_are_put_back_by_their_index(
    server: OpenAIServer, client: AsyncOpenAI
) -> None:
    server.queue_embeddings(raw(embeddings([row(1, [2.0, 2.0]), row(0, [1.0, 1.0])])))
    embedder = OpenAIEmbedder(client, model="m", dimension=2)
    assert await embedder.embed_batch(["a", "b"]) == [[1.0, 1.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    "answer",
    [
        embeddings([]),
        embeddings([row(0, [1.0])]),
        embeddings([row(0, [1.0, 1.0]), row(1, [1.0, 1.0])]),
        embeddings([row(0, [1.0, math.inf])]),
        {"surprise": True},
        {"data": None},
    ],
)
async def test_an_answer_that_cannot_be_used_is_refused_with_the_models_name(
    server: OpenAIServer, client: AsyncOpenAI, answer: object
) -> None:
    server.queue_embeddings(raw(answer))
    with pytest.raises(MemoryConfigurationError, match="embedder m"):
        await OpenAIEmbedder(client, model="m", dimension=2)("tea")


async def test_a_busy_endpoint_is_asked_again(server: OpenAIServer) -> None:
    server.queue_embeddings(busy())
    async with AsyncOpenAI(base_url=server.url, api_key="k", max_retries=1) as client:
        assert len(await OpenAIEmbedder(client, model="m", dimension=8)("tea")) == 8
    assert len(server.requests) == 2


async def test_an_endpoint_that_fails_raises_the_clients_error(
    server: OpenAIServer, client: AsyncOpenAI
) -> None:
    embedder = OpenAIEmbedder(client, model="m", dimension=8)
    server.queue_embeddings(status(500), cut(), hang())
    with pytest.raises(APIStatusError):
        await embedder("tea")
    with pytest.raises(APIConnectionError):
        await embedder("tea")
    with pytest.raises(APITimeoutError):
        await OpenAIEmbedder(client.with_options(timeout=0.05), model="m", dimension=8)("tea")


@pytest.mark.parametrize("wrong", [{"dimension": 0}, {"dimension": 8, "batch_size": 0}])
def test_sizes_below_one_are_refused(client: AsyncOpenAI, wrong: dict[str, int]) -> None:
    with pytest.raises(MemoryConfigurationError):
        OpenAIEmbedder(client, model="m", **wrong)


async def test_langchain_embeddings_give_one_text_one_vector() -> None:
    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=4), model_name="fake", dimension=4)
    alone = await embedder("tea")
    assert await embedder.embed_batch(["milk", "tea"]) == [await embedder("milk"), alone]
    assert (embedder.model_name, embedder.dimension, len(alone)) == ("fake", 4, 4)


async def test_langchain_embeddings_of_another_dimension_are_refused() -> None:
    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=4), model_name="fake", dimension=5)
    with pytest.raises(MemoryConfigurationError, match="4 numbers a vector, not 5"):
        await embedder("tea")


class LoadedTextEmbedding(TextEmbedding):
    """A fastembed model that needs no hub."""

    def __init__(self) -> None:
        self.model_name = "loaded"
        self._embedding_size = 3

    def embed(  # type: ignore[override]
        self, documents: list[str]
    ) -> Iterator[np.ndarray[tuple[int], np.dtype[np.float32]]]:
        for document in documents:
            yield np.full(3, len(document), np.float32)


async def test_fastembed_models_bring_their_name_and_dimension() -> None:
    embedder = FastEmbedEmbedder(LoadedTextEmbedding())
    assert (embedder.model_name, embedder.dimension) == ("loaded", 3)
    assert await embedder("tea") == [3.0, 3.0, 3.0]
    assert await embedder.embed_batch(["a", "milk"]) == [[1.0] * 3, [4.0] * 3]
