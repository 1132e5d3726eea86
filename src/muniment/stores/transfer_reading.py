"""The strict reader of an export: every entry is checked like an `add`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from muniment.domain import checks
from muniment.domain.frozen import freeze_mapping
from muniment.domain.identifiers import new_memory_ids
from muniment.domain.memory import Memory, checked_source
from muniment.domain.strict_json import read_object
from muniment.domain.trust import Trust
from muniment.domain.unchecked import unchecked
from muniment.stores.entries import entry_kind, entry_trust
from muniment.stores.limits import check_metadata
from muniment.stores.transfer import FORMAT, PLACE, VERSION, Intake
from muniment.stores.transfer_lines import Parser, numbered_lines, quick_parser, refused
from muniment.stores.transfer_place import Placed, moved, placed
from muniment.stores.transfer_talks import (
    MESSAGE,
    SESSION,
    Said,
    Talk,
    read_message,
    read_session,
)

USED_TWICE = "id: is used twice"
IN_A_CIRCLE = "superseded_by: the entries supersede each other in a circle"
ABOVE_SOURCES = "trust: must not be above the lowest of the entries it is derived from"

_REQUIRED = frozenset({"scope", "kind", "text", "trust"})
_FIELDS = _REQUIRED | {
    "id", "source", "importance", "created_at", "expires_at", "superseded_by", "derived_from",
    "metadata", "details",
}  # fmt: skip
_TIMES = ("updated_at", "valid_from", "invalid_at")
_MORE = ("source_session_id", "source_message_ids", "entity_ids")
_DETAILS = frozenset({*PLACE, *_TIMES, *_MORE})
_NONE: dict[str, Any] = {}
_NO_IDS: tuple[object, ...] = (None, [])
_MOST_PLACES = 4_096
_MANY = 1_000
"""A file of so many lines is worth loading a quick parser for."""

_of_checked = unchecked(Memory)
_ABSENT = (None, None, None, None, None, (), (), (), None)
"""From `expires_at` to `content_hash`."""


class Incoming(NamedTuple):
    """An entry read: `memory` has its new id and no links; those are ids of the file."""

    line: int
    place: Placed
    memory: Memory
    old_id: str | None
    superseded_by: str | None
    derived_from: tuple[str, ...]

    @property
    def audience(self) -> str:
        """The key of the audience that it joins."""
        return self.place.audience


def read_lines(
    stream: BinaryIO, taking: Intake, *, now: datetime
) -> Iterator[Incoming | Talk | Said]:
    """What a file holds, one at a time; InvalidEntryError names the line, never the text."""
    lines = numbered_lines(stream, taking)
    left = _header(lines, taking)
    reader = _Reader(taking, now)
    parse: Parser = read_object
    number, talk = 1, None
    for number, line in lines:
        if number == _MANY:
            parse = quick_parser()
        try:
            one = _one(number, line, parse(line), reader, talk)
        except ValueError as error:
            raise refused(number, str(error)) from None
        if isinstance(one, Talk):
            talk = one
        left[type(one) is Incoming] -= 1
        if left[type(one) is Incoming] < 0:
            raise refused(number, "is more than the header's count")
        yield one
    if any(left.values()):
        raise refused(number + 1, "is missing: the header counts more lines")


def check_lines(stream: BinaryIO, taking: Intake, *, now: datetime) -> None:
    """Read a file to its end and keep nothing; InvalidEntryError as `read_lines` raises it."""
    for _ in read_lines(stream, taking, now=now):
        pass


def _one(
    number: int, line: bytes, given: dict[str, Any], reader: _Reader, talk: Talk | None
) -> Incoming | Talk | Said:
    taking = reader.taking
    if SESSION not in given and MESSAGE not in given:
        if len(line) > taking.line_bytes and len(line.rstrip(b"\r\n")) > taking.line_bytes:
            raise ValueError(f"must have at most {taking.line_bytes} bytes")
        return reader.entry(number, given)
    if not taking.conversations:
        raise ValueError("is of a conversation, and those were not asked for")
    if len(given) > 1:
        raise ValueError("has a field that is not known")
    if MESSAGE in given:
        return read_message(number, given[MESSAGE], talk)
    scope = given[SESSION].get("scope") if isinstance(given[SESSION], dict) else None
    return read_session(number, given[SESSION], moved(scope, taking))


def _header(lines: Iterator[tuple[int, bytes]], taking: Intake) -> dict[bool, int]:
    """The number of entries (True) and of lines of conversations (False) promised."""
    _, first = next(lines, (1, b""))
    try:
        head = read_object(first)
        if head.get("format") != FORMAT:
            raise ValueError(f"must be a header with format {FORMAT}")
        if head.get("version") != VERSION or type(head["version"]) is not int:
            raise ValueError(f"version: must be {VERSION}")
        most = taking.max_entries
        count = checks.whole("count", head.get("count"), low=0, high=most)
        talks = head.get("conversation_lines", 0)
        return {True: count, False: checks.whole("conversation_lines", talks, low=0, high=most)}
    except ValueError as error:
        raise refused(1, str(error)) from None


class _Reader:
    """The entries of one import: what they have in common is worked out once."""

    def __init__(self, taking: Intake, now: datetime) -> None:
        self.taking = taking
        self._now = checks.instant("now", now)
        self._ids = new_memory_ids()
        self._places: dict[str, Placed] = {}
        self._trusts = {text: min(trust, taking.trust) for text, trust in Trust.spellings().items()}

    def entry(self, number: int, given: dict[str, Any]) -> Incoming:
        """An entry, checked; ValueError names the field."""
        if not given.keys() <= _FIELDS:
            raise ValueError("has a field that is not known")
        if not given.keys() >= _REQUIRED:
            raise ValueError("must have scope, kind, text and trust")
        details = _checked_details(given.get("details"))
        place = self._placed(given["scope"], details)
        memory = self._memory(given, details, place)
        old_id = checks.optional_identifier("id", given.get("id"))
        superseded_by = checks.optional_identifier("superseded_by", given.get("superseded_by"))
        if superseded_by is not None and superseded_by == old_id:
            raise ValueError("superseded_by: must be another entry")
        sources = memory.derived_from
        if old_id in sources:
            raise ValueError("derived_from: must be other entries")
        if sources:
            object.__setattr__(memory, "derived_from", ())  # not published yet: no copy is needed
        return Incoming(number, place, memory, old_id, superseded_by, sources)

    def _placed(self, scope: object, details: dict[str, Any]) -> Placed:
        if details or not isinstance(scope, str):
            return placed(scope, details, self.taking)
        known = self._places.get(scope)
        if known is None:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            known = self._places[scope] = placed(scope, details, self.taking)
        return known

    def _memory(self, given: dict[str, Any], details: dict[str, Any], place: Placed) -> Memory:
        get, now = given.get, self._now
        created = min(_instant("created_at", get("created_at")) or now, now)
        source = get("source")
        plain = _of_checked(
            next(self._ids),
            place.scope,
            entry_kind(given["kind"]),
            place.owner,
            self._text(given["text"]),
            _metadata(get("metadata", _NONE)),
            checks.unit_interval("importance", get("importance", 0.5)),
            created,
            created,
            *_ABSENT,
            self._trusts.get(str(given["trust"])) or entry_trust(given["trust"]),
            None if source is None else checked_source(source),
            place.realm.agent,
        )
        if details or get("expires_at") is not None or get("derived_from") not in _NO_IDS:
            return replace(plain, **_rarities(given, details))
        return plain

    def _text(self, value: object) -> str:
        text, most = checks.storable_text("text", value), self.taking.max_text_bytes
        if 4 * len(text) > most and len(text.encode("utf-8")) > most:
            raise ValueError(f"text: must have at most {most} bytes")
        return text


def _metadata(value: object) -> Mapping[str, Any]:
    metadata = freeze_mapping("metadata", value)
    check_metadata(metadata)
    return metadata


def _rarities(given: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
    """The fields of a memory that most entries do not have."""
    times = {name: _instant(name, details.get(name)) for name in _TIMES}
    return {
        "expires_at": _instant("expires_at", given.get("expires_at")),
        "derived_from": _ids("derived_from", given.get("derived_from")),
        "source_session_id": details.get("source_session_id"),
        "source_message_ids": _ids("source_message_ids", details.get("source_message_ids")),
        "entity_ids": _ids("entity_ids", details.get("entity_ids")),
        **{name: time for name, time in times.items() if time is not None},
    }


def _ids(name: str, value: object) -> tuple[str, ...]:
    if value in _NO_IDS:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"{name}: must be a list of ids")
    return tuple(dict.fromkeys(checks.identifier(name, each) for each in value))


def _instant(name: str, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise ValueError(f"{name}: must be a time in ISO 8601")
    return checks.instant(name, moment)


def _checked_details(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not value.keys() <= _DETAILS:
        raise ValueError("details: must be an object of known fields")
    if not all(
        value[name] is None or isinstance(value[name], str) for name in value.keys() & PLACE
    ):
        raise ValueError("details: visibility, project, principal, session and run must be text")
    return value
