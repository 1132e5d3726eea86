"""Reading facts from whatever text a model wrote: fenced, wrapped in prose, cut off, or rubbish."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muniment.replies import ExtractedFact, ProposedFacts, read_fact

MAX_REPLY_CHARACTERS = 200_000
MAX_STARTS = 200
_TAG = "(?:think|thinking|reasoning)"
# Up to a closing tag that the answer follows; some servers swallow the opening one.
_THOUGHT = re.compile(rf"\A.*</{_TAG}>(?=\s*[{{\[`])", re.DOTALL | re.IGNORECASE)
_CLOSED_THOUGHT = re.compile(rf"\A\s*<{_TAG}>.*?</{_TAG}>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(rf"\A\s*<{_TAG}>.*", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder(strict=False)  # a raw line break in a text is no harm
_BROKEN = object()


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """What could be read; `malformed` counts entries, or 1 for a reply without any."""

    facts: tuple[ExtractedFact, ...] = ()
    malformed: int = 0


def read_facts(reply: object) -> ReadFacts:
    """The facts in a model's reply of any kind; never raises."""
    if isinstance(reply, ProposedFacts):
        return ReadFacts(tuple(reply.facts), reply.malformed)
    if not isinstance(reply, str):
        entries = _entries(reply)
        return _read(entries) if entries is not None else ReadFacts(malformed=1)
    return _from_text(_answer(reply[:MAX_REPLY_CHARACTERS]))


def _answer(text: str) -> str:
    """`text` without what the model thought before it answered."""
    for thought in (_THOUGHT, _CLOSED_THOUGHT, _OPEN_THOUGHT):
        text = thought.sub("", text, count=1)
    return text


def _from_text(text: str) -> ReadFacts:
    """The first list of facts, or else the single facts that a cut-off list leaves."""
    empty: ReadFacts | None = None
    single: list[Any] = []
    broken = False
    for value in _values(text):
        if value is _BROKEN:
            broken = True
            continue
        if _is_fact(value):
            single.append(value)
            continue
        entries = _entries(value)
        read = _read(entries) if entries is not None else None
        if read is not None and (read.facts or isinstance(value, dict)):
            return read
        empty = empty or read
    if single:
        return ReadFacts(_read(single).facts, malformed=int(broken))
    return empty or ReadFacts(malformed=1)


def _read(entries: list[Any]) -> ReadFacts:
    read = [read_fact(entry) for entry in entries]
    facts = tuple(fact for fact in read if fact is not None)
    return ReadFacts(facts, len(read) - len(facts))


def _entries(value: object) -> list[Any] | None:
    """The entries of an object with a list of facts, of a bare list, or a single fact."""
    if isinstance(value, dict):
        facts: object = value.get("facts")
        if isinstance(facts, dict):
            return [facts]
        if isinstance(facts, list):
            return list(facts)
        return [value] if _is_fact(value) else None
    if isinstance(value, list) and (not value or any(_is_fact(item) for item in value)):
        return list(value)
    return None


def _is_fact(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), str)


def _values(text: str) -> Iterator[Any]:
    """Each JSON object or list in `text`, outermost first; `_BROKEN` for one that is none."""
    position = 0
    for _ in range(MAX_STARTS):
        start = _next_start(text, position)
        if start is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            value, position = _BROKEN, start + 1
        yield value


def _next_start(text: str, position: int) -> int | None:
    found = [at for at in (text.find("{", position), text.find("[", position)) if at >= 0]
    return min(found, default=None)
