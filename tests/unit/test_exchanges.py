"""A completion's two writes, where a store makes them of several: what comes in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muniment import InMemoryStore
from muniment.domain.conversation import ConversationMessage
from muniment.ports import Begun, Ending
from muniment.testing.kit import person, talk_of
from tests.doubles.turn import NOW, clock

TALK = talk_of(person())


def _message(name: str, role: str) -> ConversationMessage:
    return ConversationMessage(name, role, name, NOW)


async def _begin(store: InMemoryStore, holder: str, question: str | None = None) -> Begun:
    asked = None if question is None else _message(question, "user")
    return await store.exchanges.begin(
        TALK, asked, holder=holder, ttl_seconds=30, new_kind="chat", pairs=3
    )


async def test_what_was_answered_until_the_session_was_free_is_in_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = InMemoryStore(clock=clock)
    await _begin(store, "first", "question")
    acquire = store.service.acquire

    async def once_the_first_has_ended(*asked: Any, **more: Any) -> float:
        await store.exchanges.end(TALK, Ending(_message("answer", "assistant")), holder="first")
        return await acquire(*asked, **more)

    monkeypatch.setattr(store.service, "acquire", once_the_first_has_ended)
    begun = await _begin(store, "second")
    assert [each.content for each in begun.pairs] == ["question", "answer"]


@pytest.mark.parametrize("fault", [OSError, asyncio.CancelledError])
async def test_a_beginning_that_breaks_off_leaves_the_session_free(
    fault: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = InMemoryStore(clock=clock)

    async def broken(*_asked: Any, **_more: Any) -> None:
        raise fault

    monkeypatch.setattr(store.conversations, "recent_complete_messages", broken)
    with pytest.raises(fault):
        await _begin(store, "first", "question")
    assert await store.service.acquire(TALK, holder="second", ttl_seconds=30) == 0
