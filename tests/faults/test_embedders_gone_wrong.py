"""An embedder that fails, hangs or answers rubbish: nothing is lost, and words still find it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from muniment import MemoryPolicy, open_memory
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationRole,
)
from muniment.domain.realm import Scope
from muniment.testing.kit import person
from tests.doubles.proposing_model import ProposingModel, proposed

ANN = person("acme", "ann")
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
PLACE = Scope("acme", subject="ann")
TALK = ConversationIdentity("acme", "ann", "s1", "ann")


class _Turning:
    """An embedder of four numbers until it is told otherwise."""

    model_name = "turning"

    def __init__(self) -> None:
        self.answers: Callable[[], Awaitable[Any]] = _answering([1.0, 2.0, 3.0, 4.0])

    async def __call__(self, text: str) -> Any:
        return await self.answers()


def _answering(answer: Any) -> Callable[[], Awaitable[Any]]:
    async def given() -> Any:
        return answer

    return given


def _raising(error: BaseException) -> Callable[[], Awaitable[Any]]:
    async def raised() -> Any:
        raise error

    return raised


TURNS: dict[str, Callable[[], Awaitable[Any]]] = {
    "not a number": _answering([math.nan] * 4),
    "infinite": _answering([math.inf] * 4),
    "shorter": _answering([1.0, 2.0]),
    "longer": _answering([1.0] * 5_000),
    "empty": _answering([]),
    "nothing": _answering(None),
    "text": _answering("four"),
    "nested": _answering([[1.0, 2.0, 3.0, 4.0]]),
    "an error": _raising(RuntimeError("I like tea")),
    "a library's own cancellation": _raising(asyncio.CancelledError()),
}


@pytest.mark.parametrize("turn", TURNS)
async def test_whatever_an_embedder_turns_to_all_is_kept_and_found_by_its_words(turn: str) -> None:
    embedder, model = _Turning(), ProposingModel(proposed("Ann lives in Oslo."))
    message = ConversationMessage("m1", ConversationRole.USER, "I live in Oslo now", NOON)
    reply = ConversationMessage("m2", ConversationRole.ASSISTANT, "Noted.", NOON)
    async with open_memory(
        "sqlite:///:memory:",
        embedder=embedder,
        model=model,
        policy=MemoryPolicy(),
        clock=lambda: NOON,
    ) as memory:
        await memory.remember(ANN, "Ann drinks tea")
        embedder.answers = TURNS[turn]
        await memory.remember(ANN, "Ann sails a boat")
        await memory.store.entries.add(PLACE, "Ann owns a bicycle")
        await memory.conversations.append_messages(TALK, [message, reply])
        (extracted,) = await memory.extract(ANN, [message, reply])
        found = {each.content for each in await memory.recall(ANN, "tea boat bicycle Oslo")}
        hits = await memory.store.entries.search(PLACE, "tea boat bicycle Oslo")
        assert extracted.content == "Ann lives in Oslo."
        assert found == {hit.entry.text for hit in hits}
        assert len(found) == 4


async def test_a_hung_embedder_holds_up_no_write_and_a_cancelled_one_is_not_made() -> None:
    embedder, asked, never = _Turning(), asyncio.Event(), asyncio.Event()

    async def hang() -> Any:
        asked.set()
        await never.wait()

    async with open_memory("sqlite:///:memory:", embedder=embedder) as memory:
        await memory.remember(ANN, "Ann drinks tea")
        embedder.answers = hang
        adding = asyncio.ensure_future(memory.store.entries.add(PLACE, "Ann sails"))
        await asked.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert await memory.store.count(PLACE) == 1
