"""Model adapters, asked through their real clients over a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI
from pydantic import BaseModel, ConfigDict

from muniment.errors import (
    MemoryConfigurationError,
    MunimentError,
    StructuredOutputUnsupported,
)
from muniment.models import as_memory_model
from muniment.models.langchain import LangChainModel
from muniment.models.openai import OpenAIModel
from tests.doubles.openai_server import (
    OpenAIServer,
    busy,
    cut,
    hang,
    raw,
    refuse_structured,
    rubbish,
    slow,
    status,
    structured,
    text,
)


class Colour(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    warm: bool


RED = {"name": "red", "warm": True}
ASK: dict[str, Any] = {"system": "be brief", "user": "a colour?"}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer.running() as running:
        yield running


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as opened:
        yield opened


@pytest.fixture
def model(client: AsyncOpenAI) -> OpenAIModel:
    return OpenAIModel(client, model="m", options={"temperature": 0})


@pytest.fixture
def chat(server: OpenAIServer) -> LangChainModel:
    return LangChainModel(
        ChatOpenAI(model="m", base_url=server.url, api_key="k", max_retries=0, timeout=5)
    )


@pytest.fixture(params=["openai", "langchain"])
def adapter(
    request: pytest.FixtureRequest, model: OpenAIModel, chat: LangChainModel
) -> OpenAIModel | LangChainModel:
    return model if request.param == "openai" else chat


async def test_text_comes_back_and_prompt_and_options_arrive(
    server: OpenAIServer, model: OpenAIModel
) -> None:
    server.queue(text("red"))
    assert await model.generate_text(**ASK) == "red"
    body = server.requests[0].body
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "a colour?"},
    ]
    assert (body["model"], body["temperature"]) == ("m", 0)


async def test_a_model_that_says_nothing_gives_empty_text(
    server: OpenAIServer, model: OpenAIModel
) -> None:
    server.queue(text(None))
    assert await model.generate_text(**ASK) == ""


async def test_a_structured_reply_is_asked_for_strictly_and_read(
    server: OpenAIServer, model: OpenAIModel
) -> None:
    server.queue(structured(RED))
    reply = await model.generate_structured(schema=Colour, **ASK)
    assert reply == Colour(name="red", warm=True)
    asked = server.requests[0].body["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"]["strict"] is True
    assert asked["json_schema"]["schema"] == Colour.model_json_schema()


@pytest.mark.parametrize("code", [400, 422, 500, 501])
async def test_a_provider_that_refuses_structured_output_is_told_apart(
    server: OpenAIServer, adapter: OpenAIModel | LangChainModel, code: int
) -> None:
    server.queue(status(code, message="'response_format' is not supported"), text("red"))
    with pytest.raises(StructuredOutputUnsupported):
        await adapter.generate_structured(schema=Colour, **ASK)
    assert await adapter.generate_text(**ASK) == "red"


@pytest.mark.parametrize(
    "reply",
    [
        text("the secret colour is red"),
        text('{"name": "secret"'),
        structured({"name": "secret"}),
        structured({**RED, "secret": 1}),
        structured(["secret"]),
        text(""),
    ],
)
async def test_a_structured_reply_that_does_not_fit_is_refused_without_being_quoted(
    server: OpenAIServer, adapter: OpenAIModel | LangChainModel, reply: Any
) -> None:
    server.queue(reply)
    with pytest.raises(StructuredOutputUnsupported) as caught:
        await adapter.generate_structured(schema=Colour, **ASK)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_busy_provider_is_asked_again_when_it_said_so(server: OpenAIServer) -> None:
    server.queue(busy(), text("red"))
    async with AsyncOpenAI(base_url=server.url, api_key="k", max_retries=1) as patient:
        assert await OpenAIModel(patient, model="m").generate_text(**ASK) == "red"


async def test_a_failing_provider_raises_its_clients_error(
    server: OpenAIServer, model: OpenAIModel
) -> None:
    server.queue(status(500), busy(), cut(), rubbish())
    with pytest.raises(APIStatusError):
        await model.generate_structured(schema=Colour, **ASK)
    with pytest.raises(APIStatusError):
        await model.generate_text(**ASK)
    with pytest.raises(APIConnectionError):
        await model.generate_text(**ASK)
    with pytest.raises((APIError, ValueError)):
        await model.generate_text(**ASK)


@pytest.mark.parametrize(
    "reply",
    [raw({"choices": []}), raw({"choices": None}), raw({}), raw({"choices": [{}]}), raw([1])],
)
async def test_an_answer_without_a_choice_is_an_error_of_ours(
    server: OpenAIServer, model: OpenAIModel, reply: Any
) -> None:
    server.queue(reply, reply)
    with pytest.raises(MunimentError, match="no choice"):
        await model.generate_text(**ASK)
    with pytest.raises(MunimentError, match="no choice"):
        await model.generate_structured(schema=Colour, **ASK)


async def test_plain_text_in_place_of_an_answer_is_an_error_of_ours(
    server: OpenAIServer, model: OpenAIModel
) -> None:
    server.queue(rubbish(b"<html>maintenance</html>", kind="text/html"))
    with pytest.raises(MunimentError, match="no choice"):
        await model.generate_text(**ASK)


async def test_a_provider_that_hangs_runs_into_the_clients_timeout(
    server: OpenAIServer, client: AsyncOpenAI
) -> None:
    server.queue(hang(), slow(30, text("late")))
    for _ in range(2):
        with pytest.raises(APITimeoutError):
            await OpenAIModel(client.with_options(timeout=0.05), model="m").generate_text(**ASK)


async def test_a_langchain_chat_model_gives_text_and_structure(
    server: OpenAIServer, chat: LangChainModel
) -> None:
    server.queue(text("red"), structured(RED))
    assert await chat.generate_text(**ASK) == "red"
    assert await chat.generate_structured(schema=Colour, **ASK) == Colour(name="red", warm=True)
    assert server.requests[1].structured


async def test_a_failing_langchain_provider_raises_its_own_error(
    server: OpenAIServer, chat: LangChainModel
) -> None:
    server.queue(status(500), cut())
    with pytest.raises(APIStatusError):
        await chat.generate_structured(schema=Colour, **ASK)
    with pytest.raises(APIConnectionError):
        await chat.generate_text(**ASK)


async def test_a_chat_model_without_structured_output_is_told_apart() -> None:
    adapter = as_memory_model(FakeListChatModel(responses=["red"]))
    with pytest.raises(StructuredOutputUnsupported):
        await adapter.generate_structured(schema=Colour, **ASK)
    assert await adapter.generate_text(**ASK) == "red"


async def test_a_stream_reaches_a_real_client_word_by_word(
    server: OpenAIServer, client: AsyncOpenAI
) -> None:
    server.queue(text("red and blue"), text("red and blue", cut_after=2))
    stream = await client.chat.completions.create(model="m", messages=[], stream=True)
    words = [chunk.choices[0].delta.content async for chunk in stream]
    assert words == ["red", " and", " blue", None]
    heard: list[str | None] = []
    with pytest.raises((APIConnectionError, httpx.RemoteProtocolError)):  # noqa: PT012
        stream = await client.chat.completions.create(model="m", messages=[], stream=True)
        async for chunk in stream:
            heard.append(chunk.choices[0].delta.content)
    assert heard == ["red", " and"]


async def test_a_memory_model_is_used_as_it_is(model: OpenAIModel) -> None:
    assert as_memory_model(model) is model


def test_anything_else_is_refused_as_a_model() -> None:
    with pytest.raises(MemoryConfigurationError, match="not str"):
        as_memory_model("gpt")


async def test_structured_output_is_refused_by_the_double_as_providers_do(
    server: OpenAIServer, model: OpenAIModel
) -> None:
    server.queue(refuse_structured())
    with pytest.raises(StructuredOutputUnsupported):
        await model.generate_structured(schema=Colour, **ASK)
    assert server.requests[0].structured
