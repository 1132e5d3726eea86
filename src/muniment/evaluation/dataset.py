"""Question sets: LoCoMo's own JSON, or JSON Lines with one conversation a line.

A line holds ``{"id", "messages": [{"id", "session", "role", "name", "text", "created_at"}],
"memories": [{"id", "type", "text", "created_at"}], "questions": [{"question", "evidence": [ids of
messages or memories], "category"}]}``; ``created_at`` is ISO 8601, UTC where it names no zone.
``memories``, ``role``, ``name`` and ``category`` may be left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from muniment.domain.conversation import ConversationRole
from muniment.domain.memory import MemoryType

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
UNMEASURED = frozenset({"adversarial"})
OTHER = "other"

_DIALOGUE_ID = re.compile(r"D(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")


class QuestionSetError(ValueError):
    """A file that is no question set; one line with the place and the problem, never the text."""


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
class TypedMemory:
    """A fact, preference, decision or episode that is known from the start."""

    id: str
    type: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the ids of the messages and memories that answer it."""

    text: str
    evidence: frozenset[str]
    category: str

    def is_measured(self) -> bool:
        """Whether there is something to find."""
        return bool(self.evidence) and self.category not in UNMEASURED


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation's messages in order, what else is known, its questions, and how many of
    their evidence ids were kept, repaired and dropped."""

    id: str
    messages: tuple[Message, ...]
    questions: tuple[Asked, ...]
    evidence: Counter[str] = field(default_factory=Counter)
    memories: tuple[TypedMemory, ...] = ()


def read(path: Path) -> list[Conversation]:
    """The conversations of a file, told apart by its first character."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise QuestionSetError(f"file: {_reason(error)}") from None
    if text.lstrip().startswith("["):
        found = [_read("conversation", n, _from_locomo, one) for n, one in enumerate(_json(text))]
    else:
        lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        found = [_read("line", n, _from_line, _json(line, n)) for n, line in lines]
    if not any(asked.is_measured() for one in found for asked in one.questions):
        raise QuestionSetError("file: holds no question with evidence")
    return found


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else "is not UTF-8"


def _json(text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise QuestionSetError(f"line {line or error.lineno}: is not JSON") from None


def _read(what: str, number: int, reader: Any, item: Any) -> Conversation:
    try:
        made: Conversation = reader(item)
    except KeyError as error:
        raise QuestionSetError(f"{what} {number}: {error.args[0]}: is missing") from None
    except (TypeError, ValueError, AttributeError):
        raise QuestionSetError(f"{what} {number}: is not in a known form") from None
    return made


def _from_locomo(item: Mapping[str, Any]) -> Conversation:
    messages = tuple(_locomo_messages(item["conversation"]))
    known = {message.id for message in messages}
    counts: Counter[str] = Counter()
    questions = tuple(_locomo_question(asked, known, counts) for asked in item["qa"])
    return Conversation(str(item["sample_id"]), messages, questions, counts)


def _locomo_messages(conversation: Mapping[str, Any]) -> Iterator[Message]:
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


def _locomo_question(asked: Mapping[str, Any], known: set[str], counts: Counter[str]) -> Asked:
    valid: set[str] = set()
    for written in asked.get("evidence", ()):
        ids = [f"D{session}:{turn}" for session, turn in _DIALOGUE_ID.findall(written)]
        there = [found for found in ids if found in known]
        counts["kept" if there == [written] else "repaired" if there else "dropped"] += 1
        valid.update(there)
    return Asked(asked["question"], frozenset(valid), CATEGORIES[asked["category"]])


def _from_line(item: Mapping[str, Any]) -> Conversation:
    messages = tuple(_line_message(message) for message in item.get("messages", ()))
    memories = tuple(_line_memory(memory) for memory in item.get("memories", ()))
    known = {one.id for one in messages} | {one.id for one in memories}
    counts: Counter[str] = Counter()
    questions = tuple(_line_question(asked, known, counts) for asked in item["questions"])
    return Conversation(str(item["id"]), messages, questions, counts, memories)


def _line_question(asked: Mapping[str, Any], known: set[str], counts: Counter[str]) -> Asked:
    written: Sequence[str] = asked["evidence"]
    valid = frozenset(written) & known
    counts["kept"] += len(valid)
    counts["dropped"] += len(written) - len(valid)
    return Asked(str(asked["question"]), valid, str(asked.get("category", OTHER)))


def _line_message(message: Mapping[str, Any]) -> Message:
    return Message(
        id=str(message["id"]),
        session=str(message["session"]),
        role=ConversationRole(message.get("role", "user")).value,
        name=str(message.get("name") or ""),
        text=str(message["text"]),
        created_at=_instant(message["created_at"]),
    )


def _line_memory(memory: Mapping[str, Any]) -> TypedMemory:
    return TypedMemory(
        id=str(memory["id"]),
        type=MemoryType(memory["type"]).value,
        text=str(memory["text"]),
        created_at=_instant(memory["created_at"]),
    )


def _instant(written: str) -> datetime:
    instant = datetime.fromisoformat(written)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
