"""What is read back from a row, unchecked, is what a checked instance would hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.stores.recalled import recalled_message
from muniment.stores.rows import (
    MEMORY_COLUMNS,
    instant_of,
    memory_of,
    memory_row,
    message_of,
    message_row,
)

IDS = st.sampled_from(("a", "b c", "é", "咖啡", "x" * 40))
LISTS = st.lists(IDS, max_size=3).map(tuple)
STARTS = st.integers(-(10**15), 10**16).map(instant_of)
METADATA = st.dictionaries(
    IDS, st.one_of(st.integers(-5, 5), st.booleans(), IDS, st.lists(IDS), st.none()), max_size=3
)


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    start = draw(STARTS)
    later = (
        st.none()
        | st.just(start + timedelta(microseconds=1))
        | st.just(datetime.max.replace(tzinfo=UTC))
    )
    return Memory(
        draw(IDS),
        draw(st.sampled_from(MemoryScope)),
        draw(st.sampled_from(MemoryType)),
        MemoryOwner(draw(IDS), *draw(st.tuples(*[st.none() | IDS] * 5))),
        draw(IDS),
        metadata=draw(METADATA),
        importance=draw(st.floats(0, 1)),
        created_at=start,
        updated_at=start + timedelta(microseconds=draw(st.integers(0, 10))),
        expires_at=draw(later),
        valid_from=draw(st.none() | st.just(start)),
        invalid_at=draw(later),
        superseded_by=draw(st.none() | IDS),
        source_session_id=draw(st.none() | IDS),
        source_message_ids=draw(LISTS),
        derived_from=draw(LISTS),
        entity_ids=draw(LISTS),
        content_hash=draw(st.none() | IDS),
        trust=draw(st.sampled_from(Trust)),
        source=draw(st.none() | st.just("api")),
        agent_id=draw(st.none() | IDS),
    )


@given(memories())
def test_a_memory_comes_back_from_its_row_as_it_was(memory: Memory) -> None:
    row = memory_row(memory)
    read = memory_of(tuple(row[name] for name in MEMORY_COLUMNS.replace(" ", "").split(",")))
    assert read == memory
    assert repr(read) == repr(memory)


def test_a_memory_from_a_row_is_as_read_only_as_any_other() -> None:
    row: dict[str, Any] = memory_row(
        Memory(
            "1",
            MemoryScope.USER,
            MemoryType.FACT,
            MemoryOwner("t", user_id="u"),
            "tea",
            {"a": [1, {"b": 2}]},
        )
    )
    read = memory_of(tuple(row[name] for name in MEMORY_COLUMNS.replace(" ", "").split(",")))
    assert read.metadata == {"a": (1, {"b": 2})}
    with pytest.raises(TypeError):
        read.metadata["a"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        read.content = "coffee"  # type: ignore[misc]


@given(IDS, st.sampled_from(ConversationRole), st.none() | IDS, STARTS, st.booleans())
def test_a_message_comes_back_and_is_recalled_as_a_checked_memory(
    text: str, role: ConversationRole, name: str | None, said: datetime, session_only: bool
) -> None:
    message = ConversationMessage("m", role, text, said, token_count=3, run_id="r", name=name)
    assert message_of(message_row(message)) == message
    recalled = recalled_message(
        "t", "u", message=message, session_id="s", session_only=session_only
    )
    assert recalled == Memory(
        "m",
        MemoryScope.SESSION if session_only else MemoryScope.USER,
        MemoryType.CONVERSATION,
        MemoryOwner("t", user_id="u", session_id="s" if session_only else None),
        text,
        metadata={"role": role.value} | ({} if name is None else {"name": name}),
        created_at=said,
        source_session_id="s",
        source_message_ids=("m",),
    )
