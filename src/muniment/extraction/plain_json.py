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
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()


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
    text = _THINKING.sub(" ", reply[:MAX_REPLY_CHARACTERS])
    return _from_text(text)


def _from_text(text: str) -> ReadFacts:
    best: ReadFacts | None = None
    for value in _values(text):
        entries = _entries(value)
        if entries is None:
            continue
        read = _read(entries)
        if read.facts or isinstance(value, dict):
            return read
        best = best or read
    return best if best is not None else _salvaged(text)


def _salvaged(text: str) -> ReadFacts:
    """Single facts of a reply that was cut off inside its list."""
    facts = [read_fact(value) for value in _values(text) if _is_fact(value)]
    return ReadFacts(tuple(fact for fact in facts if fact is not None), malformed=1)


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
    if isinstance(value, list) and any(_is_fact(item) for item in value):
        return list(value)
    return None


def _is_fact(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), str)


def _values(text: str) -> Iterator[Any]:
    """Each JSON object or list in `text`, outermost first, passing over what does not parse."""
    position = 0
    for _ in range(MAX_STARTS):
        start = _next_start(text, position)
        if start is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        yield value


def _next_start(text: str, position: int) -> int | None:
    found = [at for at in (text.find("{", position), text.find("[", position)) if at >= 0]
    return min(found, default=None)
