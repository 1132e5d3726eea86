"""Turns go on whatever a provider does, through the real adapter and a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from openai import AsyncOpenAI

from muniment import (
    ConversationMessage,
    ConversationRole,
    InMemoryStore,
    MemoryContextBuilder,
    MemoryExtractor,
    MemoryOwner,
    MemoryPolicy,
    conversation_identity,
)
from muniment.models.openai import OpenAIModel
from tests.doubles.openai_server import (
    OpenAIServer,
    Reply,
    busy,
    cut,
    hang,
    raw,
    refuse_structured,
    rubbish,
    status,
    structured,
    text,
)

ANA = MemoryOwner(tenant_id="acme", principal_id="ana", user_id="ana", session_id="s1")
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
POLICY = MemoryPolicy(call_timeout_seconds=0.5, turn_timeout_seconds=2)
TURN = (
    ConversationMessage("q1", ConversationRole.USER, "I moved to Turin.", AT),
    ConversationMessage("a1", ConversationRole.ASSISTANT, "Noted.", AT + timedelta(seconds=1)),
)
FACT = {
    "content": "Ana lives in Turin.",
    "memory_type": "fact",
    "scope": "user",
    "importance": 0.8,
    "entities": ["Turin"],
    "replaces": None,
}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer.running() as running:
        yield running


@pytest.fixture
async def model(server: OpenAIServer) -> AsyncIterator[OpenAIModel]:
    async with AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        yield OpenAIModel(client, model="m")


@pytest.mark.parametrize(
    "reply",
    [
        text(""),
        text("no idea"),
        structured([1, 2]),
        structured({"facts": "none", "query": 3}),
        refuse_structured(),
        status(500),
        busy(retry_after="60"),
        cut(),
        rubbish(),
        raw({"choices": []}),
        hang(),
    ],
)
async def test_a_turn_is_never_failed_by_its_model(
    server: OpenAIServer, model: OpenAIModel, reply: Reply
) -> None:
    server.default = reply
    store = InMemoryStore()
    await store.conversations.append_messages(conversation_identity(ANA), TURN)
    builder = MemoryContextBuilder(
        policy=POLICY, messages=store.conversations, memories=store.memories, model=model
    )
    context = await builder.build(ANA, "And where do I live?")
    assert [message.content for message in context.messages] == ["I moved to Turin.", "Noted."]
    assert context.standalone_query.strip()
    extractor = MemoryExtractor(policy=POLICY, memories=store.memories, model=model)
    assert list(await extractor.extract(ANA, messages=TURN)) == []
    assert server.requests


async def test_a_provider_that_refuses_structure_still_gives_facts_in_plain_text(
    server: OpenAIServer, model: OpenAIModel
) -> None:
    server.queue(refuse_structured(), structured({"facts": [FACT]}))
    store = InMemoryStore()
    extractor = MemoryExtractor(policy=POLICY, memories=store.memories, model=model)
    kept = await extractor.extract(ANA, messages=TURN)
    assert [memory.content for memory in kept] == ["Ana lives in Turin."]
