"""A real and very weak language model behind the real adapter: turns never fail because of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from openai import AsyncOpenAI

from muniment import (
    ConversationMessage,
    ConversationRole,
    InMemoryStore,
    Memory,
    MemoryContextBuilder,
    MemoryExtractor,
    MemoryOwner,
    MemoryPolicy,
    conversation_identity,
)
from muniment.errors import StructuredOutputUnsupported
from muniment.models.openai import OpenAIModel
from muniment.replies import CondenseRequest
from tests.model.serving import serving

pytestmark = pytest.mark.real_model

ANA = MemoryOwner(tenant_id="acme", principal_id="ana", user_id="ana", session_id="s1")
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
SAID = (
    "My name is Ana and I live in Turin.",
    "I am allergic to peanuts, so please keep that in mind.",
    "My sister Clara is getting married in June.",
    "I prefer short answers.",
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
async def model(endpoint: str) -> AsyncIterator[OpenAIModel]:
    async with AsyncOpenAI(base_url=endpoint, api_key="none", max_retries=0) as client:
        yield OpenAIModel(client, model="smollm2", options={"temperature": 0, "max_tokens": 256})


async def test_the_model_answers_in_text(model: OpenAIModel) -> None:
    assert (await model.generate_text(system="Be brief.", user="Name a colour.")).strip()


async def test_a_structured_question_is_answered_or_refused_in_a_known_way(
    model: OpenAIModel,
) -> None:
    try:
        reply = await model.generate_structured(
            schema=CondenseRequest, system="Rewrite the question.", user="And where is it?"
        )
    except StructuredOutputUnsupported:
        return
    assert isinstance(reply, CondenseRequest)


async def test_turns_go_on_whatever_the_model_says(model: OpenAIModel) -> None:
    store = InMemoryStore()
    policy = MemoryPolicy(
        recent_max_tokens=200, summary_keep_messages=2, call_timeout_seconds=60,
        turn_timeout_seconds=180,
    )  # fmt: skip
    builder = MemoryContextBuilder(
        policy=policy,
        messages=store.conversations,
        memories=store.memories,
        index=store.memories,
        model=model,
    )
    extractor = MemoryExtractor(
        policy=policy, memories=store.memories, index=store.memories, model=model
    )
    identity = conversation_identity(ANA)
    kept: list[Memory] = []
    for place, question in enumerate(SAID):
        context = await builder.build(ANA, question)
        assert context.standalone_query.strip()
        reply = await model.generate_text(system="Be brief.", user=context.render() + question)
        turn = exchange(place, question, reply)
        await store.conversations.append_messages(identity, turn)
        kept += await extractor.extract(ANA, messages=turn)
    stranger = MemoryOwner(tenant_id="acme", principal_id="bo", user_id="bo", session_id="s1")
    seen = await MemoryContextBuilder(
        policy=policy, messages=store.conversations, memories=store.memories
    ).build(stranger, SAID[0])
    assert (seen.messages, seen.recalled) == ((), ())
    assert all(str(memory.trust) == "model" for memory in kept)


def exchange(place: int, question: str, reply: str) -> tuple[ConversationMessage, ...]:
    at = AT + timedelta(minutes=place)
    return (
        ConversationMessage(f"q{place}", ConversationRole.USER, question, at),
        ConversationMessage(f"a{place}", ConversationRole.ASSISTANT, reply.strip() or "...", at),
    )
