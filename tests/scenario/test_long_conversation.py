"""One long conversation with tool calls, from the first turn to the sixtieth, on each store."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from muniment import (
    ConversationMessage,
    ConversationRole,
    MemoryContext,
    MemoryOwner,
    MemoryPolicy,
    MemoryQuery,
    MemoryScope,
    MemoryType,
    OpenMemory,
    approximate_tokens,
    conversation_identity,
    open_memory,
)
from muniment.context.window import window_tokens
from tests.doubles.turn import NOW, Model

ANA = MemoryOwner("acme", user_id="ana", principal_id="token", session_id="long")
POLICY = MemoryPolicy(recall_messages="user", recent_max_tokens=400, turn_timeout_seconds=300)
TURNS = 60
ASIDES = {
    3: "My sister Ida is allergic to peanuts.",
    11: "The boat is called Penelope.",
    24: "We moved the launch to the ninth of May.",
}
NUMBERED = re.compile(r"\[#(\d+)\]")


@dataclass
class Story:
    """The conversation as it is lived: each turn is built, answered, and persisted."""

    memory: OpenMemory
    number: int = 0
    said: list[str] = field(default_factory=list)

    def _message(self, role: str, text: str, **more: str) -> ConversationMessage:
        self.number += 1
        content = f"{text} [#{self.number}]"
        self.said.append(content)
        return ConversationMessage(
            f"m{self.number}",
            ConversationRole(role),
            content,
            NOW + timedelta(minutes=self.number),
            tool_calls_json=more.get("calls"),
            tool_call_id=more.get("answers"),
        )

    async def turn(self, place: int) -> MemoryContext:
        question = ASIDES.get(place, f"Question {place}: how far is stage {place} of the works?")
        context = await self.memory.context(ANA, question)
        messages = [self._message("user", question)]
        if place % 3 == 0:
            call = json.dumps([{"id": f"c{place}", "function": {"name": "look_up"}}])
            messages.append(self._message("assistant", "Let me look.", calls=call))
            size = 400 if place % 9 == 0 else 10
            messages.append(self._message("tool", "row " * size, answers=f"c{place}"))
        messages.append(self._message("assistant", f"Stage {place} is on time, more or less."))
        await self.memory.conversations.append_messages(conversation_identity(ANA), messages)
        return context


@pytest.fixture(params=["sqlite", "memory"])
async def model_and_memory(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Model, OpenMemory]]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'story.db'}"
    model = Model("The works go on.", query="the boat's name Penelope")
    async with open_memory(
        url, policy=POLICY, model=model, embedder=None, clock=lambda: NOW + timedelta(days=1)
    ) as memory:
        yield model, memory


def check_window(context: MemoryContext) -> None:
    """Within budget or the one newest exchange, never opening on a cut tool result."""
    window = context.messages
    if not window:
        return
    assert window[0].role is ConversationRole.USER or len(window) == 1
    within = window_tokens(window, approximate_tokens) <= POLICY.recent_max_tokens
    assert within or len(window) == 1
    calls = {call["id"] for m in window for call in json.loads(m.tool_calls_json or "[]")}
    assert {m.tool_call_id for m in window if m.tool_call_id} <= calls


def check_block(context: MemoryContext) -> None:
    assert approximate_tokens(context.render()) <= POLICY.block_tokens
    shown = {message.message_id for message in context.messages}
    assert not shown & {memory.memory_id for memory in context.recalled}


async def test_sixty_turns_stay_bounded_and_nothing_is_summarized_twice(
    model_and_memory: tuple[Model, OpenMemory],
) -> None:
    model, memory = model_and_memory
    story = Story(memory)
    for place in range(1, TURNS + 1):
        context = await story.turn(place)
        check_window(context)
        check_block(context)

    covered = [int(n) for user in model.users("summary") for n in NUMBERED.findall(user)]
    assert covered == list(range(1, len(covered) + 1))
    assert len(covered) > story.number - 2 * POLICY.recent_max_messages
    query = MemoryQuery(ANA, (MemoryScope.SESSION,), (MemoryType.SUMMARY,))
    (row,) = await memory.manager.search(ANA, query)
    assert row.metadata["last_covered_message_id"] == f"m{len(covered)}"

    final = await memory.context(ANA, "What was the boat called?")
    assert final.summary == "The works go on."
    assert final.rewritten
    assert "Penelope" in final.render()
    assert len(final.recalled) <= POLICY.recall_top_k


async def test_the_next_session_and_nobody_else_remembers_it(
    model_and_memory: tuple[Model, OpenMemory],
) -> None:
    _, memory = model_and_memory
    story = Story(memory)
    for place in range(1, 31):
        await story.turn(place)
    tomorrow = replace(ANA, session_id="tomorrow")
    recalled = await memory.recall(tomorrow, "What is Ida allergic to?")
    assert "peanuts" in recalled[0].content
    assert (await memory.context(tomorrow, "Ida?")).summary is None
    for stranger in (
        replace(ANA, user_id="bo"),
        replace(ANA, tenant_id="acme-corp"),
    ):
        context = await memory.context(stranger, "What is Ida allergic to?")
        assert (context.messages, context.summary, context.recalled) == ((), None, ())


async def test_clearing_the_conversation_forgets_its_summary_too(
    model_and_memory: tuple[Model, OpenMemory],
) -> None:
    _, memory = model_and_memory
    story = Story(memory)
    for place in range(1, 31):
        await story.turn(place)
    assert (await memory.context(ANA, "And now?")).summary is not None
    await memory.manager.clear(ANA)
    context = await memory.context(ANA, "What is Ida allergic to?")
    assert (context.messages, context.summary, context.recalled) == ((), None, ())
