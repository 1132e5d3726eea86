"""Whatever a memory face is asked, its store hears of the caller's audiences alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import audiences
from muniment.stores.asks import Ask
from muniment.stores.embedding import RowEmbedder
from muniment.stores.in_memory.memories import InMemoryMemories
from muniment.stores.in_memory.tables import Tables
from muniment.stores.limits import Limits
from muniment.stores.memory_face import Memories

ANA = MemoryOwner("acme", user_id="ana", principal_id="key", session_id="s1")
NOW = datetime(2026, 11, 30, tzinfo=UTC)
TYPES = tuple(MemoryType)


class Overheard(InMemoryMemories):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(Tables(lambda: NOW, Limits()), RowEmbedder(None))
        self.asks: list[Ask] = []

    async def _of_id(self, ask: Ask, memory_id: str) -> Any:
        self.asks.append(ask)
        return await super()._of_id(ask, memory_id)

    async def _listed(self, ask: Ask) -> Any:
        self.asks.append(ask)
        return await super()._listed(ask)

    async def _paged(self, ask: Ask, after: Any) -> Any:
        self.asks.append(ask)
        return await super()._paged(ask, after)

    async def _found(self, ask: Ask) -> Any:
        self.asks.append(ask)
        return await super()._found(ask)

    async def _remove(self, ask: Ask, memory_id: str) -> Any:
        self.asks.append(ask)
        return await super()._remove(ask, memory_id)


def candidates(scopes: Sequence[MemoryScope], **more: Any) -> Callable[[Memories], Awaitable[Any]]:
    return lambda face: face.candidates(ANA, "tea", scopes=scopes, memory_types=TYPES, **more)


MINE = audiences(ANA)
USERS = audiences(ANA, (MemoryScope.USER,))


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        (lambda face: face.get(ANA, "m"), MINE),
        (lambda face: face.delete(ANA, "m"), MINE),
        (lambda face: face.search(MemoryQuery(ANA)), MINE),
        (lambda face: face.search(MemoryQuery(ANA, scopes=(MemoryScope.USER,))), USERS),
        (lambda face: face.search(MemoryQuery(ANA, text="tea")), MINE),
        (lambda face: face.page(MemoryQuery(ANA, scopes=(MemoryScope.USER,))), USERS),
        (lambda face: face.search_memories(MemoryQuery(ANA, text="tea")), MINE),
        (lambda face: face.search_memories(MemoryQuery(ANA), [1.0]), MINE),
        (candidates(tuple(MemoryScope)), MINE),
        (candidates((MemoryScope.USER,)), USERS),
        (candidates(()), ()),
    ],
)
async def test_a_store_is_asked_about_the_callers_audiences_alone(
    question: Callable[[Memories], Awaitable[Any]], keys: tuple[str, ...]
) -> None:
    face = Overheard()
    await question(face)
    assert [ask.all_keys for ask in face.asks] == [keys]


@pytest.mark.parametrize(
    ("owner", "messages", "session", "heard"),
    [
        (ANA, "off", "s1", 0),
        (ANA, "user", None, 1),
        (ANA, "session", "s1", 1),
        (ANA, "session", None, 0),
        (MemoryOwner("acme"), "user", None, 0),
    ],
)
async def test_messages_are_asked_about_where_their_user_and_session_are_known(
    owner: MemoryOwner, messages: str, session: str | None, heard: int
) -> None:
    face = Overheard()
    await face.candidates(
        owner, "tea", scopes=(), memory_types=TYPES, messages=messages, session_id=session
    )
    (ask,) = face.asks
    assert len(ask.message_keys) == heard
    assert ask.all_keys == ask.message_keys
