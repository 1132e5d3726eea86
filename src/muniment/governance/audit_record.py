"""One audit record: how it is written as a line, and how a line is held to that form.

The canonical form is JSON in ASCII with sorted keys and no blanks. The hash is SHA-256 over
the canonical form of the record without its hash, so it also covers the previous hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.errors import AuditError

GENESIS = "0" * 64
MAX_RECORD_BYTES = 64 * 1024
MAX_EVENT_LENGTH = 256
_REST_BYTES = 512  # sequence number, hashes and names of fields, which an entry has not yet
RECORD_ID = "record_id"
MAX_DATA_DEPTH = 32
REDACTED = "**********"

# An unterminated string runs to the end, which keeps the scan linear on hostile lines.
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class BrokenRecord(Exception):
    """A line that is not the record that belongs there; its text is the reason, never content."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """`sequence` counts from 1; `time` is ISO 8601 in UTC; `realm` a realm's key or None;
    hashes are 64 lower-case hexadecimal digits, `previous_hash` GENESIS for the first."""

    sequence: int
    time: str
    event: str
    realm: str | None
    data: Mapping[str, Any]
    previous_hash: str
    hash: str = ""

    def sealed(self) -> AuditRecord:
        """This record with the hash that its other fields give."""
        fields = self._fields()
        del fields["hash"]
        return replace(self, hash=hashlib.sha256(_canonical(fields)).hexdigest())

    def line(self) -> bytes:
        """The canonical form, without a line feed. AuditError above 64 KiB."""
        line = _canonical(self._fields())
        if len(line) > MAX_RECORD_BYTES:
            raise AuditError(f"an audit record has at most {MAX_RECORD_BYTES} bytes")
        return line

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A record that is in no log yet: `id` is its own for ever, `time` as in AuditRecord."""

    id: str
    time: str
    event: str
    realm: str | None
    data: Mapping[str, Any]

    @classmethod
    def checked(
        cls, record_id: str, time: str, event: str, realm: RealmKey | None, data: Mapping[str, Any]
    ) -> AuditEntry:
        """An entry that fits a record wherever the log then stands; AuditError otherwise."""
        event, plain = checked_event(event), checked_data(data)
        entry = cls(record_id, time, event, realm_text(realm), plain)
        fields = {name: getattr(entry, name) for name in cls.__slots__}
        if len(_canonical(fields)) > MAX_RECORD_BYTES - _REST_BYTES:
            raise AuditError(f"an audit record has at most {MAX_RECORD_BYTES} bytes")
        return entry

    def following(self, records: int, last_hash: str) -> AuditRecord:
        """The record of this entry as the next after `records` others."""
        data = {**self.data, RECORD_ID: self.id}
        sealed = AuditRecord(records + 1, self.time, self.event, self.realm, data, last_hash)
        return sealed.sealed()


def read_record(line: bytes, *, sequence: int, previous_hash: str) -> AuditRecord:
    """The record on `line`, which must follow `previous_hash`; BrokenRecord otherwise."""
    record = _parse(line)
    if type(record.sequence) is not int or record.sequence != sequence:
        raise BrokenRecord(f"the sequence number is not {sequence}")
    if record.previous_hash != previous_hash:
        raise BrokenRecord("the previous hash is not that of the record before")
    if record.hash != record.sealed().hash:
        raise BrokenRecord("the hash does not match the record")
    return record


def record_id(line: bytes) -> str | None:
    """The id of the record on a sound `line`, if it was made as an entry."""
    held: object = json.loads(line)["data"].get(RECORD_ID)
    return held if isinstance(held, str) else None


def checked_event(event: str) -> str:
    """`event`, if it is 1 to 256 printable characters; AuditError otherwise."""
    if not isinstance(event, str) or not 1 <= len(event) <= MAX_EVENT_LENGTH:
        raise AuditError(f"event: must be text of 1 to {MAX_EVENT_LENGTH} characters")
    if not event.isprintable():
        raise AuditError("event: must be printable")
    return event


def checked_data(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """A plain copy of `data` with secrets redacted; AuditError when JSON cannot hold it."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise AuditError("data: must be a mapping")
    copy: dict[str, Any] = _plain(data, MAX_DATA_DEPTH)
    try:
        _canonical(copy)
    except ValueError:  # not a finite number, or an integer too long to be written
        raise AuditError("data: must be representable as JSON") from None
    return copy


def realm_text(scope: Scope | MemoryOwner | RealmKey | None) -> str | None:
    """The key of a realm; an owner's parts that no realm may hold are percent-encoded.

    The parts of a `Scope` hold none of the encoded characters, so its own `key` results and
    no two realms share one. ScopeError for any other type.
    """
    if scope is None:
        return None
    realm = scope if isinstance(scope, RealmKey) else realm_key(scope)
    parts = ((name, getattr(realm, name)) for name in ("tenant", "subject", "agent", "session"))
    return "/".join(f"{name}={_quoted(part)}" for name, part in parts if part is not None)


def _quoted(part: str) -> str:
    return re.sub("[%/=]", lambda match: f"%{ord(match[0]):02X}", part)


def _canonical(value: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(value).encode("ascii")


def _plain(value: object, depth: int) -> Any:
    if hasattr(type(value), "get_secret_value"):  # pydantic's secrets, without loading pydantic
        return REDACTED
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if depth == 0:
        raise AuditError(f"data: must be nested at most {MAX_DATA_DEPTH} deep")
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1) for item in value]
    raise AuditError("data: must be representable as JSON")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise AuditError("data: keys must be text")
    return key


def _parse(line: bytes) -> AuditRecord:
    if _depth(line) > MAX_DATA_DEPTH + 1:
        raise BrokenRecord("it is nested too deep to be a record")
    try:
        fields = json.loads(line)
        canonical = isinstance(fields, dict) and _canonical(fields) == line
    except ValueError:
        raise BrokenRecord("it is not JSON") from None
    if not canonical or fields.keys() != set(AuditRecord.__slots__):
        raise BrokenRecord("it is not a record in canonical form")
    return AuditRecord(**fields)


def _depth(line: bytes) -> int:
    """How deep `line` nests, found without parsing it: a parser would recurse."""
    most = line.count(b"[") + line.count(b"{")
    if most <= MAX_DATA_DEPTH:
        return most
    depth = deepest = 0
    for char in _STRINGS.sub(b"", line):
        depth += _STEPS.get(char, 0)
        deepest = max(deepest, depth)
    return deepest
