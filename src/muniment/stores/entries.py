"""The realm face's values: an entry is a memory as its realm sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from muniment.domain import checks
from muniment.domain.frozen import freeze_mapping, thaw
from muniment.domain.identifiers import new_memory_id
from muniment.domain.memory import (
    MAX_DERIVED_FROM,
    Memory,
    MemoryType,
    checked_source,
    identifiers,
)
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_of
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.unchecked import unchecked
from muniment.domain.visibility import audience_key, realm_audience
from muniment.errors import InvalidEntryError, ScopeError
from muniment.governance.audit_record import realm_text
from muniment.stores.limits import MAX_TEXT_BYTES, check_metadata

DEFAULT_KIND = MemoryType.FACT
DEFAULT_SOURCE = "api"
DEFAULT_IMPORTANCE = 0.5
MAX_FORGOTTEN = 1_000

_NOT_ADDED = (MemoryType.CONVERSATION, MemoryType.WORKING)
_KINDS = {text: kind for text, kind in MemoryType.spellings().items() if kind not in _NOT_ADDED}
_TRUSTS = Trust.spellings()
_NO_HISTORY = (None, None, None, None, ())  # valid_from to source_message_ids
_checked = unchecked(Memory)


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One memory by realm. Times are aware and in UTC; `metadata` is a copy.

    `scope` is the realm that the entry belongs to; a RealmKey where its owner's ids fit no Scope.
    """

    id: str
    scope: Scope | RealmKey
    kind: MemoryType
    text: str
    source: str | None
    trust: Trust
    importance: float
    created_at: datetime
    expires_at: datetime | None = None
    superseded_by: str | None = None
    derived_from: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: `scope` as its key (parts that fit no Scope percent-encoded), times in
        ISO 8601 with microseconds, in UTC.
        """
        return {
            "id": self.id,
            "scope": realm_text(self.scope),
            "kind": self.kind.value,
            "text": self.text,
            "source": self.source,
            "trust": self.trust.value,
            "importance": self.importance,
            "created_at": iso(self.created_at),
            "expires_at": None if self.expires_at is None else iso(self.expires_at),
            "superseded_by": self.superseded_by,
            "derived_from": list(self.derived_from),
            "metadata": thaw(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An entry found; `score` lies in (0, 1], higher is better, 1 for the best of its search."""

    entry: MemoryEntry
    score: float


_entry = unchecked(MemoryEntry)


def iso(instant: datetime) -> str:
    """ISO 8601 with microseconds and the offset of UTC."""
    return instant.isoformat(timespec="microseconds")


def entry_of(memory: Memory, scope: Scope | None = None) -> MemoryEntry:
    """A memory as its realm sees it, `scope` being that realm where it is known."""
    return _entry(
        memory.memory_id,
        scope or _spelled(realm_of(memory)),
        memory.memory_type,
        memory.content,
        memory.source,
        memory.trust,
        memory.importance,
        memory.created_at,
        memory.expires_at,
        memory.superseded_by,
        memory.derived_from,
        thaw(memory.metadata) if memory.metadata else {},
    )


@lru_cache(maxsize=4_096)
def _spelled(realm: RealmKey) -> Scope | RealmKey:
    try:
        return Scope(realm.tenant, realm.subject, realm.agent, realm.session)
    except ScopeError:
        return realm


@lru_cache(maxsize=4_096)
def place_of(realm: RealmKey) -> tuple[MemoryScope, MemoryOwner]:
    """Where `add` puts an entry: with subject and session SESSION, with a subject USER, of a
    tenant alone TENANT. With an agent or session and no subject the owner has no user, so that
    no caller sees the entry and its realm alone does.
    """
    owner = MemoryOwner(realm.tenant, user_id=realm.subject, session_id=realm.session)
    if realm.session is not None:
        return MemoryScope.SESSION, owner
    if realm.subject is not None or realm.agent is not None:
        return MemoryScope.USER, owner
    return MemoryScope.TENANT, owner


def new_entry(
    realm: RealmKey,
    text: str,
    *,
    kind: MemoryType | str,
    trust: Trust | str,
    source: str,
    importance: float,
    now: datetime,
    expires_at: datetime | None = None,
    derived_from: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Memory:
    """The memory that `add` stores under a new id; InvalidEntryError names what is wrong."""
    scope, owner = place_of(realm)
    try:
        created = checks.instant("created_at", now)
        return _checked(
            new_memory_id(),
            scope,
            entry_kind(kind),
            owner,
            checks.storable_text("text", text),
            freeze_mapping("metadata", {} if metadata is None else metadata),
            checks.unit_interval("importance", importance),
            created,
            created,
            None if expires_at is None else _expiry(expires_at, created),
            *_NO_HISTORY,
            _sources(derived_from) if derived_from != () else (),
            (),
            None,
            entry_trust(trust),
            source if source == DEFAULT_SOURCE else checked_source(source),
            realm.agent,
        )
    except ValueError as error:
        raise refusal(error) from None


def replacement(
    old: Memory,
    text: str,
    *,
    kind: MemoryType | str | None,
    trust: Trust | str,
    source: str,
    importance: float | None,
    expires_at: datetime | None,
    metadata: Mapping[str, Any] | None,
    now: datetime,
) -> Memory:
    """The memory that takes `old`'s place, in its realm; what is None stays as it was."""
    if old.superseded_by is not None:
        raise InvalidEntryError("id: the entry is superseded already")
    if expires_at is None and old.expires_at is not None and old.expires_at <= now:
        raise InvalidEntryError("id: the entry is expired; its replacement needs an expires_at")
    new = new_entry(
        realm_of(old),
        text,
        kind=old.memory_type if kind is None else kind,
        trust=trust,
        source=source,
        importance=old.importance if importance is None else importance,
        now=now,
        expires_at=old.expires_at if expires_at is None else expires_at,
        metadata=old.metadata if metadata is None else metadata,
    )
    begins = now if old.valid_from is None else max(now, old.valid_from)
    try:
        return replace(new, scope=old.scope, owner=old.owner, valid_from=begins)
    except ValueError as error:
        raise refusal(error) from None


def refusal(error: ValueError) -> InvalidEntryError:
    """A domain value's refusal as the store's own."""
    return error if isinstance(error, InvalidEntryError) else InvalidEntryError(str(error))


def checked_entry(memory: Memory, max_text_bytes: int = MAX_TEXT_BYTES) -> str:
    """The audience that an entry is stored under; InvalidEntryError over a limit."""
    if len(memory.content.encode()) > max_text_bytes:
        raise InvalidEntryError(f"text: must have at most {max_text_bytes} bytes")
    check_metadata(memory.metadata)
    key = audience_key(memory.scope, memory.owner)
    return key or realm_audience(memory.owner.tenant_id, memory.owner.session_id)


def entry_kind(value: MemoryType | str) -> MemoryType:
    """The kind by name; messages and working state have tiers of their own."""
    kind = _KINDS.get(str(value))
    if kind is None:
        raise InvalidEntryError(f"kind: must be one of {', '.join(dict.fromkeys(_KINDS.values()))}")
    return kind


def entry_trust(value: Trust | str, *, name: str = "trust") -> Trust:
    """The trust by name."""
    trust = _TRUSTS.get(str(value))
    if trust is None:
        raise InvalidEntryError(f"{name}: must be one of {', '.join(Trust)}")
    return trust


def entry_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The distinct ids of a `forget`, at most 1000."""
    if isinstance(ids, str):
        raise InvalidEntryError("ids: must be a sequence of ids")
    given = list(ids)
    if len(given) > MAX_FORGOTTEN:
        raise InvalidEntryError(f"ids: must be at most {MAX_FORGOTTEN}")
    if not all(isinstance(each, str) for each in given):
        raise InvalidEntryError("ids: must be text")
    return tuple(dict.fromkeys(given))


def _sources(ids: object) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(identifiers("derived_from", ids)))
    if len(named) > MAX_DERIVED_FROM:
        raise InvalidEntryError(f"derived_from: must have at most {MAX_DERIVED_FROM} ids")
    return named


def _expiry(expires_at: object, created: datetime) -> datetime:
    expires = checks.instant("expires_at", expires_at)
    if expires <= created:
        raise InvalidEntryError("expires_at: must be after created_at")
    return expires
