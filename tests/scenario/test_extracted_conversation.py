"""Sixty turns with tool calls, each built from memory and extracted into it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    ConversationMessage,
    ConversationRole,
    MemoryContext,
    MemoryOwner,
    MemoryPolicy,
    OpenMemory,
    ProposedFacts,
    conversation_identity,
    open_memory,
)
from muniment.replies import CondenseRequest
from tests.doubles.proposing_model import proposed
from tests.doubles.turn import NOW

ANA = MemoryOwner("acme", user_id="ana", principal_id="token", session_id="long")
CITIES = ("Porto", "Ghent", "Oslo")
SHOWN = re.compile(r"\[([0-9a-f]{12})\] \(user\) Ana lives in")


class Scribe:
    """Summarizes, condenses and proposes: a move every twentieth turn, a detail every turn."""

    def __init__(self, fails_every: int = 0) -> None:
        self.turn = self.calls = 0
        self.fails_every = fails_every
        self.seen: set[str] = set()

    def _called(self, kind: str) -> None:
        self.calls += 1
        if self.fails_every and self.calls % self.fails_every == 0:
            raise RuntimeError("SECRET of the provider")
        self.seen.add(kind)

    async def generate_text(self, *, system: str, user: str) -> str:
        self._called("summary")
        return "They planned the works."

    async def generate_structured(self, *, schema: Any, system: str, user: str) -> Any:
        if schema is CondenseRequest:
            self._called("condense")
            asked = f"Where does Ana live, in turn {self.turn}?"
            return CondenseRequest(query=asked, wanted_types=["fact"])
        self._called("extract")
        facts = [proposed(f"Work item {self.turn} was planned.", scope="session")]
        if self.turn % 20 == 1:
            held = SHOWN.search(user)
            moved = f"Ana lives in {CITIES[self.turn // 20]}."
            facts.append(proposed(moved, replaces=held[1] if held else ""))
        return ProposedFacts.model_validate({"facts": facts})


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'memory.db'}"


def exchange(turn: int) -> list[ConversationMessage]:
    at = NOW + timedelta(minutes=turn)
    user, assistant, tool = (
        ConversationRole.USER,
        ConversationRole.ASSISTANT,
        ConversationRole.TOOL,
    )
    city = f"I live in {CITIES[turn // 20]} now. " if turn % 20 == 1 else ""
    call = f'[{{"id": "c{turn}", "name": "plan", "args": {{}}}}]'
    return [
        ConversationMessage(f"u{turn}", user, f"{city}Plan work item {turn}, please.", at),
        ConversationMessage(f"c{turn}", assistant, "", at, tool_calls_json=call),
        ConversationMessage(f"t{turn}", tool, f"item {turn} planned", at, tool_call_id=f"c{turn}"),
        ConversationMessage(f"a{turn}", assistant, f"Item {turn} is planned.", at),
    ]


async def lived(memory: OpenMemory, scribe: Scribe) -> AsyncIterator[MemoryContext]:
    identity = conversation_identity(ANA)
    for turn in range(60):
        scribe.turn = turn
        messages = exchange(turn)
        yield await memory.context(ANA, messages[0].content)
        await memory.conversations.append_messages(identity, messages)
        await memory.extract(ANA, messages)
        await memory.extract(ANA, messages)  # a retried turn stores nothing


def opened(url: str, scribe: Scribe) -> Any:
    policy = MemoryPolicy(
        recent_max_tokens=120, block_budget_fraction=1.0, turn_timeout_seconds=300
    )
    clock = lambda: NOW + timedelta(minutes=scribe.turn)  # noqa: E731
    return open_memory(url, policy=policy, model=scribe, embedder=None, clock=clock)


async def test_every_step_of_the_build_order_is_seen_and_facts_are_kept_once(url: str) -> None:
    scribe = Scribe()
    async with opened(url, scribe) as memory:
        contexts = [context async for context in lived(memory, scribe)]
        assert scribe.seen == {"summary", "condense", "extract"}
        first = contexts[0]
        assert (first.messages, first.summary, first.recalled) == ((), None, ())
        assert not first.rewritten
        assert any(context.summary_written for context in contexts)
        assert not contexts[1].summary_written  # below the trigger
        last = contexts[-1]
        assert last.rewritten
        assert last.summary == "They planned the works."
        assert [kind.value for kind in last.wanted_types] == ["fact"]
        assert last.messages[0].role is ConversationRole.USER
        living = [m for m in last.recalled if m.content.startswith("Ana lives")]
        assert [m.content for m in living] == ["Ana lives in Oslo."]
        chain = await memory.history(ANA, living[0].memory_id)
        assert [m.content for m in chain] == [f"Ana lives in {city}." for city in CITIES]
        assert {m.trust.value for m in chain} == {"model"}
        # 60 details, 3 cities, and the summary: each once, whatever was retried.
        assert await memory.store.count(MemoryOwner("acme", user_id="ana")) == 64


@pytest.mark.parametrize("every", [1, 2, 3, 5])
async def test_no_turn_fails_where_the_model_fails(
    url: str, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    scribe = Scribe(fails_every=every)
    async with opened(url, scribe) as memory:
        contexts = [context async for context in lived(memory, scribe)]
    assert len(contexts) == 60
    assert all(context.messages for context in contexts[1:])
    assert "SECRET" not in caplog.text
