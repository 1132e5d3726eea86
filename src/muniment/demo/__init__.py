"""A written chat history of several people over seven months, with questions to ask of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

__all__ = ["Demo", "DemoMemory", "DemoMessage", "DemoQuestion", "load_demo"]


@dataclass(frozen=True, slots=True)
class DemoMessage:
    """One chat message; `at` is aware (UTC) and rises within a session."""

    tenant: str
    user: str
    session: str
    message_id: str
    role: str
    name: str
    at: datetime
    content: str


@dataclass(frozen=True, slots=True)
class DemoMemory:
    """A fact to be remembered.

    `memory_type`, `scope` and `trust` are the enums' values, `importance` is 0..1, and `replaces`
    is the index in `Demo.memories` of an earlier fact of the same user. A fact older than the one
    that it replaces is late news.
    """

    tenant: str
    user: str
    content: str
    memory_type: str
    scope: str
    trust: str
    importance: float
    valid_from: datetime
    replaces: int | None


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question, and what answers it: messages by id, and facts by index in `Demo.memories`.

    No expected message means that the answer belongs to somebody else. `as_of` is the instant whose
    knowledge counts, None for the present.
    """

    tenant: str
    user: str
    question: str
    expect_message_ids: tuple[str, ...]
    expect_memories: tuple[int, ...]
    as_of: datetime | None
    note: str


@dataclass(frozen=True, slots=True)
class Demo:
    """The data set: messages by session in order of time, memories in the order to store them."""

    messages: tuple[DemoMessage, ...]
    memories: tuple[DemoMemory, ...]
    questions: tuple[DemoQuestion, ...]


def load_demo() -> Demo:
    """Read the shipped data set; it is the same at every call."""
    folder = files(__name__)
    lines = folder.joinpath("conversation.jsonl").read_text(encoding="utf-8").split("\n")
    asked = json.loads(folder.joinpath("questions.json").read_text(encoding="utf-8"))
    return Demo(
        messages=tuple(_message(json.loads(line)) for line in lines if line),
        memories=tuple(_memory(row) for row in asked["memories"]),
        questions=tuple(_question(row) for row in asked["questions"]),
    )


def _message(row: Mapping[str, Any]) -> DemoMessage:
    return DemoMessage(**{**row, "at": datetime.fromisoformat(row["at"])})


def _memory(row: Mapping[str, Any]) -> DemoMemory:
    return DemoMemory(**{**row, "valid_from": datetime.fromisoformat(row["valid_from"])})


def _question(row: Mapping[str, Any]) -> DemoQuestion:
    as_of = row["as_of"]
    return DemoQuestion(
        **{
            **row,
            "expect_message_ids": tuple(row["expect_message_ids"]),
            "expect_memories": tuple(row["expect_memories"]),
            "as_of": None if as_of is None else datetime.fromisoformat(as_of),
        }
    )
