"""The export format, JSON Lines after a header, and its strict reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muniment.domain import checks
from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey, realm_of
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError
from muniment.stores.entries import entry_of, entry_trust, iso, place_of
from muniment.stores.limits import MAX_TEXT_BYTES

FORMAT = "muniment-entries"
VERSION = 1
MAX_ENTRIES = 100_000
MAX_BYTES = 64 << 20


PLACE = ("visibility", "project", "principal", "session", "run")
"""The details that say where an entry goes."""

_LARGEST = 1 << 53


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did: entries stored, those passed over as known, and links left out;
    then the sessions and messages that are new, where those were asked for.
    """

    imported: int
    skipped_duplicates: int
    dropped_links: int
    sessions: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class Intake:
    """What an import may bring: `realm` bounds it, `trust` caps it.

    `rescope` moves every entry into the realm's tenant; `shared` admits what a user wrote for
    a project or a tenant where the realm is narrower than that; `conversations` admits sessions
    and messages.
    """

    realm: RealmKey
    trust: Trust
    rescope: bool
    skip_duplicates: bool
    shared: bool
    conversations: bool
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
    skip_duplicates: bool = True,
    shared: bool = False,
    include_conversations: bool = False,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
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
        realm=realm,
        trust=trust,
        rescope=rescope,
        skip_duplicates=skip_duplicates,
        shared=shared,
        conversations=include_conversations,
        max_entries=entries,
        max_bytes=size,
        max_text_bytes=max_text_bytes,
    )


# -- writing -------------------------------------------------------------------------------


def header_line(count: int, talks: int | None = None) -> bytes:
    """The first line of a file with `count` entries, and `talks` lines of conversations."""
    head = {"format": FORMAT, "version": VERSION, "count": count}
    return json_line(head if talks is None else {**head, "conversation_lines": talks})


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
