"""A store that reads a turn's messages and summary together: used once, and no part lost by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muniment import (
    Memory,
    MemoryContext,
    MemoryContextBuilder,
    MemoryPolicy,
    MemoryScope,
    MemoryType,
    open_memory,
)
from muniment.stores.sqlite import AsyncSQLiteStore
from tests.doubles.turn import (
    OWNER,
    Messages,
    Repository,
    Together,
    clock,
    exchanges,
    fact,
)

QUICK = MemoryPolicy(call_timeout_seconds=0.05)


def _summary(content: str = "They spoke.") -> Memory:
    owner = replace(OWNER, run_id=None)
    return fact(
        "s", content, owner=owner, scope=MemoryScope.SESSION, memory_type=MemoryType.SUMMARY
    )


async def _built(
    store: Together, policy: MemoryPolicy = QUICK, memories: Repository | None = None
) -> MemoryContext:
    builder = MemoryContextBuilder(
        policy=policy,
        messages=store.messages,
        memories=memories or store.memories,
        clock=clock,
        openings=store,
    )
    return await builder.build(OWNER, "And now?")


def _steps(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.step for record in caplog.records]  # type: ignore[attr-defined]


async def test_messages_and_summary_come_from_one_read() -> None:
    apart = Repository(fault="raise")  # what is asked of the face by itself would be missing
    store = Together(Messages(exchanges(20)), Repository(_summary()))
    context = await _built(store, memories=apart)
    assert [each.message_id for each in context.messages] == [f"m{n}" for n in range(29, 41)]
    assert (context.summary, store.openings) == ("They spoke.", 1)


async def test_the_summary_that_was_changed_last_is_the_one() -> None:
    older = replace(_summary("Before."), memory_id="a")
    newer = replace(_summary("After."), updated_at=clock())
    context = await _built(Together(Messages(), Repository(newer, older)))
    assert context.summary == "After."


@pytest.mark.parametrize(
    ("messages", "memories", "failed"),
    [("raise", "", "load messages"), ("", "raise", "load summary")],
)
async def test_where_one_of_both_fails_the_other_is_there(
    messages: str, memories: str, failed: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Together(
        Messages(exchanges(2), fault=messages),
        Repository(_summary(), fault=memories, fails=("search",)),
    )
    context = await _built(store)
    assert len(context.messages) == (0 if messages else 4)
    assert context.summary == (None if memories else "They spoke.")
    assert _steps(caplog)[:2] == ["load messages and summary", failed]


async def test_an_opening_that_hangs_is_waited_for_once(caplog: pytest.LogCaptureFixture) -> None:
    store = Together(Messages(exchanges(2)), Repository(_summary()), fault="hang")
    context = await _built(store)
    assert (context.messages, context.summary) == ((), None)
    assert _steps(caplog) == ["load messages and summary"]


async def test_disabled_memory_reads_the_messages_alone() -> None:
    store = Together(Messages(exchanges(20)), Repository(_summary()))
    context = await _built(store, MemoryPolicy.disabled())
    assert (len(context.messages), context.summary, store.openings) == (4, None, 0)


async def test_a_sqlite_store_opens_its_turns_so(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    opening = AsyncSQLiteStore.opening

    async def noted(self: AsyncSQLiteStore, *asked: Any, limit: int) -> Any:
        opened.append(limit)
        return await opening(self, *asked, limit=limit)

    monkeypatch.setattr(AsyncSQLiteStore, "opening", noted)
    async with open_memory("sqlite:///:memory:") as memory:
        assert (await memory.context(OWNER, "And now?")).messages == ()
    assert opened == [memory.policy.recent_max_messages]
