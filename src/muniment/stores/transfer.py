"""The export format, JSON Lines after a header, and its strict reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO, NoReturn
from urllib.parse import unquote

from muniment.domain import checks
from muniment.domain.identifiers import new_memory_id
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.realm import RealmKey, realm_of
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audience_key, realm_audience
from muniment.errors import InvalidEntryError
from muniment.stores.entries import entry_kind, entry_of, entry_trust, iso, place_of
from muniment.stores.limits import MAX_TEXT_BYTES, check_metadata

FORMAT = "muniment-entries"
VERSION = 1
MAX_ENTRIES = 100_000
MAX_BYTES = 64 << 20

USED_TWICE = "id: is used twice"
IN_A_CIRCLE = "superseded_by: the entries supersede each other in a circle"
ABOVE_SOURCES = "trust: must not be above the lowest of the entries it is derived from"

_LARGEST = 1 << 53
_REQUIRED = frozenset({"scope", "kind", "text", "trust"})
_FIELDS = _REQUIRED | {
    "id", "source", "importance", "created_at", "expires_at", "superseded_by", "derived_from",
    "metadata", "details",
}  # fmt: skip
_TIMES = ("updated_at", "valid_from", "invalid_at")
_PLACE = ("visibility", "project", "principal", "session", "run")
_MORE = ("source_session_id", "source_message_ids", "entity_ids")
_DETAILS = frozenset({*_PLACE, *_TIMES, *_MORE})
_SHARED = (MemoryScope.PROJECT, MemoryScope.TENANT)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did: entries stored, those passed over as known, and links left out."""

    imported: int
    skipped_duplicates: int
    dropped_links: int


@dataclass(frozen=True, slots=True)
class Intake:
    """What an import may bring: `realm` bounds it, `trust` caps it.

    `rescope` moves every entry into the realm's tenant; `shared` admits what a user wrote for
    a project or a tenant where the realm is narrower than that.
    """

    realm: RealmKey
    trust: Trust
    rescope: bool
    skip_duplicates: bool
    shared: bool
    max_entries: int
    max_bytes: int
    max_text_bytes: int

    @property
    def line_bytes(self) -> int:
        """The longest line: 64 KiB, and more only for texts that may be longer than 8192."""
        return 6 * self.max_text_bytes + 16_384 if self.max_text_bytes > MAX_TEXT_BYTES else 65_536


def intake(
    realm: RealmKey,
    *,
    max_trust: Trust | str,
    rescope: bool,
    skip_duplicates: bool,
    shared: bool,
    max_entries: int,
    max_bytes: int,
    max_text_bytes: int = MAX_TEXT_BYTES,
) -> Intake:
    """The options of an import, checked: InvalidEntryError names the one that does not fit."""
    try:
        entries = checks.whole("max_entries", max_entries, low=0, high=_LARGEST)
        size = checks.whole("max_bytes", max_bytes, low=0, high=_LARGEST)
    except ValueError as error:
        raise InvalidEntryError(str(error)) from None
    trust = entry_trust(max_trust, name="max_trust")
    return Intake(
        realm, trust, rescope, skip_duplicates, shared, entries, size, max_text_bytes
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Incoming:
    """An entry read: `memory` has its new id and no links; those are ids of the file."""

    line: int
    audience: str
    memory: Memory
    old_id: str | None
    superseded_by: str | None
    derived_from: tuple[str, ...]


# -- writing -------------------------------------------------------------------------------


def header_line(count: int) -> bytes:
    """The first line of a file with `count` entries."""
    return json_line({"format": FORMAT, "version": VERSION, "count": count})


def json_line(value: Mapping[str, Any]) -> bytes:
    """One line of a file."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8") + b"\n"


def exported(memory: Memory) -> dict[str, Any]:
    """An entry as plain JSON values.

    What `add` alone would not bring back stands under ``details``; most entries have none.
    """
    record, details = entry_of(memory).to_dict(), _details(memory)
    return {**record, "details": details} if details else record


def _details(memory: Memory) -> dict[str, Any]:
    owner, realm = memory.owner, realm_of(memory)
    held: dict[str, Any] = {
        "visibility": None if memory.scope is place_of(realm)[0] else memory.scope.value,
        "project": owner.project_id,
        "principal": owner.principal_id,
        "session": None if owner.session_id == realm.session else owner.session_id,
        "run": owner.run_id,
        "source_session_id": memory.source_session_id,
        "source_message_ids": list(memory.source_message_ids),
        "entity_ids": list(memory.entity_ids),
        "valid_from": _optional_iso(memory.valid_from),
        "invalid_at": _optional_iso(memory.invalid_at),
    }
    if memory.updated_at != memory.created_at:
        held["updated_at"] = iso(memory.updated_at)
    return {name: value for name, value in held.items() if value}


def _optional_iso(instant: datetime | None) -> str | None:
    return None if instant is None else iso(instant)


# -- reading -------------------------------------------------------------------------------


def read_entries(stream: BinaryIO, taking: Intake, *, now: datetime) -> Iterator[Incoming]:
    """The entries of a file, one at a time; InvalidEntryError names the line, never the text."""
    lines = _lines(stream, taking)
    expected = _header(lines, taking)
    count, number = 0, 1
    for number, line in lines:
        try:
            entry = _entry(number, _object(line), taking, now)
        except ValueError as error:
            raise refused(number, str(error)) from None
        count += 1
        if count > expected:
            raise refused(number, "is more than the header's count")
        yield entry
    if count < expected:
        raise refused(number + 1, "is missing: the header counts more entries")


def refused(number: int, problem: str) -> InvalidEntryError:
    """What is wrong with a line."""
    return InvalidEntryError(f"line {number}: {problem}")


def _lines(stream: BinaryIO, taking: Intake) -> Iterator[tuple[int, bytes]]:
    most, left, number = taking.line_bytes, taking.max_bytes, 0
    while line := stream.readline(most + 2):
        number += 1
        left -= len(line)
        if not isinstance(line, bytes):
            raise InvalidEntryError("import: must be a binary stream")
        if len(line.rstrip(b"\r\n")) > most:
            raise refused(number, f"must have at most {most} bytes")
        if left < 0:
            raise refused(number, f"the file has more than {taking.max_bytes} bytes")
        yield number, line


def _header(lines: Iterator[tuple[int, bytes]], taking: Intake) -> int:
    """The number of entries that the header promises."""
    try:
        head = _object(next(lines, (1, b""))[1])
        if head.get("format") != FORMAT:
            raise ValueError(f"must be a header with format {FORMAT}")
        if head.get("version") != VERSION or isinstance(head["version"], bool):
            raise ValueError(f"version: must be {VERSION}")
        return checks.whole("count", head.get("count"), low=0, high=taking.max_entries)
    except ValueError as error:
        raise refused(1, str(error)) from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Malformed("names a field twice")
    return value


class _Malformed(ValueError):
    """What is wrong with a line, in words that quote nothing of it."""


def _constant(_: str) -> NoReturn:
    raise _Malformed("must hold finite numbers only")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = _DECODER.decode(line.decode("utf-8"))
    except _Malformed:
        raise
    except RecursionError:
        raise _Malformed("is nested too deep") from None
    except ValueError:
        raise _Malformed("must be a JSON object in UTF-8") from None
    if not isinstance(value, dict):
        raise _Malformed("must be a JSON object in UTF-8")
    return value


def _entry(number: int, given: dict[str, Any], taking: Intake, now: datetime) -> Incoming:
    if not given.keys() <= _FIELDS:
        raise ValueError("has a field that is not known")
    if not given.keys() >= _REQUIRED:
        raise ValueError("must have scope, kind, text and trust")
    details = _checked_details(given.get("details"))
    scope, owner, realm, audience = _placed(given["scope"], details, taking)
    memory = _memory(given, details, scope, owner, realm, taking, now)
    if memory.metadata:
        check_metadata(memory.metadata)
    old_id = checks.optional_identifier("id", given.get("id"))
    superseded_by = checks.optional_identifier("superseded_by", given.get("superseded_by"))
    if superseded_by is not None and superseded_by == old_id:
        raise ValueError("superseded_by: must be another entry")
    sources = memory.derived_from
    return Incoming(number, audience, _unlinked(memory), old_id, superseded_by, sources)


def _unlinked(memory: Memory) -> Memory:
    if memory.derived_from:
        object.__setattr__(memory, "derived_from", ())  # not published yet: no copy is needed
    return memory


def _memory(
    given: dict[str, Any],
    details: dict[str, Any],
    scope: MemoryScope,
    owner: MemoryOwner,
    realm: RealmKey,
    taking: Intake,
    now: datetime,
) -> Memory:
    text = checks.storable_text("text", given["text"])
    if len(text.encode("utf-8")) > taking.max_text_bytes:
        raise ValueError(f"text: must have at most {taking.max_text_bytes} bytes")
    created = min(_instant("created_at", given.get("created_at")) or now, now)
    times = {name: _instant(name, details.get(name)) for name in _TIMES if name in details}
    return Memory(
        memory_id=new_memory_id(),
        scope=scope,
        memory_type=entry_kind(given["kind"]),
        owner=owner,
        content=text,
        metadata=given.get("metadata", {}),
        importance=given.get("importance", 0.5),
        created_at=created,
        expires_at=_instant("expires_at", given.get("expires_at")),
        derived_from=_ids("derived_from", given.get("derived_from")),
        trust=min(entry_trust(given["trust"]), taking.trust),
        source=given.get("source"),
        agent_id=realm.agent,
        source_session_id=details.get("source_session_id"),
        source_message_ids=_ids("source_message_ids", details.get("source_message_ids")),
        entity_ids=_ids("entity_ids", details.get("entity_ids")),
        **times,  # type: ignore[arg-type]  # None stands for absent in each
    )


def _ids(name: str, value: object) -> tuple[str, ...]:
    if value is None:
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
        value[name] is None or isinstance(value[name], str) for name in value.keys() & _PLACE
    ):
        raise ValueError("details: visibility, project, principal, session and run must be text")
    return value


# -- where an entry goes -------------------------------------------------------------------


def _placed(
    scope: object, details: dict[str, Any], taking: Intake
) -> tuple[MemoryScope, MemoryOwner, RealmKey, str]:
    realm = _realm(scope) if isinstance(scope, str) else None
    if realm is None:
        raise ValueError("scope: must look like tenant=T/subject=S/agent=A/session=N")
    if taking.rescope:
        realm = RealmKey(taking.realm.tenant, realm.subject, realm.agent, realm.session)
    if not taking.realm.covers(realm):
        raise ValueError("scope: lies outside the realm")
    place = tuple(details.get(name) for name in _PLACE) if details else (None,) * len(_PLACE)
    width, owner, audience = _place(realm, *place)
    if width in _SHARED and realm.subject is not None and not (taking.shared or _whole(taking)):
        raise ValueError("visibility: a project's or tenant's needs a tenant-wide realm")
    return width, owner, realm, audience


def _whole(taking: Intake) -> bool:
    realm = taking.realm
    return realm == RealmKey(realm.tenant)


@lru_cache(maxsize=4_096)
def _realm(key: str) -> RealmKey | None:
    parts: dict[str, str] = {}
    names = iter(("tenant", "subject", "agent", "session"))
    for part in key.split("/"):
        name, _, value = part.partition("=")
        if not value or name not in names:  # each name once, in this order
            return None
        parts[name] = checks.identifier(name, unquote(value, errors="strict"))
    return RealmKey(**parts) if "tenant" in parts else None


@lru_cache(maxsize=4_096)
def _place(
    realm: RealmKey,
    visibility: str | None,
    project: str | None,
    principal: str | None,
    session: str | None,
    run: str | None,
) -> tuple[MemoryScope, MemoryOwner, str]:
    width, _ = place_of(realm)
    if visibility is not None:
        width = _visibility(visibility)
    owner = MemoryOwner(
        realm.tenant,
        project_id=project,
        user_id=realm.subject,
        principal_id=principal,
        session_id=realm.session if session is None else session,
        run_id=run,
    )
    audience = audience_key(width, owner)
    if audience is None and visibility is None:
        audience = realm_audience(realm.tenant, realm.session)
    narrow = width in (MemoryScope.SESSION, MemoryScope.RUN)
    same = owner_user(owner) == realm.subject and (realm.session is not None) == narrow
    if audience is None or not same:
        raise ValueError("visibility: does not fit the scope")
    return width, owner, audience


def _visibility(value: str) -> MemoryScope:
    if value == MemoryScope.GLOBAL.value:
        raise ValueError("visibility: global is not imported")
    try:
        return MemoryScope(value)
    except ValueError:
        raise ValueError("visibility: must be run, session, user, project or tenant") from None
