"""Question sets: LoCoMo's own JSON, or JSON Lines with one conversation a line.

A line holds ``{"id", "messages": [{"id", "session", "role", "name", "text", "created_at"}],
"questions": [{"question", "evidence": [message ids], "category"}]}``; ``created_at`` is ISO 8601.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
MEASURED = ("multi-hop", "temporal", "open-domain", "single-hop")

_DIALOGUE_ID = re.compile(r"D(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Message:
    """One utterance; the speaker's name is not part of ``text``."""

    id: str
    session: str
    role: str
    name: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the ids of the messages that answer it."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation's messages in order, its questions, and what its evidence needed."""

    id: str
    messages: tuple[Message, ...]
    questions: tuple[Asked, ...]
    evidence: Counter[str] = field(default_factory=Counter)


def read(path: Path) -> list[Conversation]:
    """The conversations of a file, told apart by its first character."""
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        return [_from_locomo(item) for item in json.loads(text)]
    return [_from_line(json.loads(line)) for line in text.splitlines() if line.strip()]


def _from_locomo(item: dict[str, Any]) -> Conversation:
    messages = tuple(_locomo_messages(item["conversation"]))
    known = {message.id for message in messages}
    counts: Counter[str] = Counter()
    questions = tuple(_locomo_question(asked, known, counts) for asked in item["qa"])
    return Conversation(str(item["sample_id"]), messages, questions, counts)


def _locomo_messages(conversation: dict[str, Any]) -> Iterator[Message]:
    first = conversation["speaker_a"]
    numbers = sorted(int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key)))
    for number in numbers:
        began = _locomo_time(conversation[f"session_{number}_date_time"])
        for place, turn in enumerate(conversation[f"session_{number}"]):
            caption = turn.get("blip_caption")
            yield Message(
                id=turn["dia_id"],
                session=f"session_{number}",
                role="user" if turn["speaker"] == first else "assistant",
                name=turn["speaker"],
                text=" ".join(part for part in (turn["text"], caption) if part),
                created_at=began + timedelta(seconds=place),
            )


def _locomo_time(written: str) -> datetime:
    return datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _locomo_question(asked: dict[str, Any], known: set[str], counts: Counter[str]) -> Asked:
    valid: set[str] = set()
    for written in asked.get("evidence", ()):
        ids = [f"D{session}:{turn}" for session, turn in _DIALOGUE_ID.findall(written)]
        there = [found for found in ids if found in known]
        counts["kept" if there == [written] else "repaired" if there else "dropped"] += 1
        valid.update(there)
    return Asked(asked["question"], frozenset(valid), CATEGORIES[asked["category"]])


def _from_line(item: dict[str, Any]) -> Conversation:
    messages = tuple(_line_message(message) for message in item["messages"])
    known = {message.id for message in messages}
    counts: Counter[str] = Counter()
    questions: list[Asked] = []
    for asked in item["questions"]:
        valid = frozenset(asked["evidence"]) & known
        counts["kept"] += len(valid)
        counts["dropped"] += len(asked["evidence"]) - len(valid)
        questions.append(Asked(asked["question"], valid, str(asked.get("category", "single-hop"))))
    return Conversation(str(item["id"]), messages, tuple(questions), counts)


def _line_message(message: dict[str, Any]) -> Message:
    written = datetime.fromisoformat(message["created_at"])
    return Message(
        id=str(message["id"]),
        session=str(message["session"]),
        role=str(message.get("role", "user")),
        name=str(message.get("name", "")),
        text=str(message["text"]),
        created_at=written if written.tzinfo else written.replace(tzinfo=UTC),
    )
