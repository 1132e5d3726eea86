"""A memory: what is known, whose it is, where it came from, and when it held true."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from muniment.domain import checks
from muniment.domain.frozen import freeze_mapping
from muniment.domain.named import NamedEnum
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust

MAX_DERIVED_FROM = 100
_SOURCE = re.compile(r"[\w.:@/-]+")
_Enum = TypeVar("_Enum", bound=NamedEnum)


class MemoryType(NamedEnum):
    """What kind of thing is remembered."""

    CONVERSATION = "conversation"
    FACT = "fact"
    PREFERENCE = "preference"
    DECISION = "decision"
    EPISODE = "episode"
    SUMMARY = "summary"
    WORKING = "working"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Memory:
    """One long-term memory. All times are aware and kept in UTC; ValueError names the field.

    `importance` is 0..1; `expires_at` is retention, `[valid_from, invalid_at)` is truth;
    `source` is 1 to 128 letters, digits and ``_ . : @ / -``; at most 100 `derived_from`.
    """

    memory_id: str
    scope: MemoryScope
    memory_type: MemoryType
    owner: MemoryOwner
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    importance: float = 0.5
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = None  # type: ignore[assignment]  # becomes created_at
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    invalid_at: datetime | None = None
    superseded_by: str | None = None
    source_session_id: str | None = None
    source_message_ids: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()
    entity_ids: tuple[str, ...] = ()
    content_hash: str | None = None
    trust: Trust = Trust.UNTRUSTED
    source: str | None = None
    agent_id: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "memory_id", checks.identifier("memory_id", self.memory_id))
        put(self, "scope", _member("scope", MemoryScope, self.scope))
        put(self, "memory_type", _member("memory_type", MemoryType, self.memory_type))
        put(self, "trust", _member("trust", Trust, self.trust))
        if not isinstance(self.owner, MemoryOwner):
            raise ValueError("owner: must be a MemoryOwner")
        checks.storable_text("content", self.content)
        put(self, "metadata", freeze_mapping("metadata", self.metadata))
        put(self, "importance", checks.unit_interval("importance", self.importance))
        self._check_provenance()
        self._check_times()

    def _check_provenance(self) -> None:
        put = object.__setattr__
        for name in ("superseded_by", "source_session_id", "content_hash", "agent_id"):
            if (given := getattr(self, name)) is not None:
                put(self, name, checks.identifier(name, given))
        for name in ("source_message_ids", "derived_from", "entity_ids"):
            ids: object = getattr(self, name)
            if ids or type(ids) is not tuple:
                put(self, name, identifiers(name, ids))
        if len(self.derived_from) > MAX_DERIVED_FROM:
            raise ValueError(f"derived_from: must have at most {MAX_DERIVED_FROM} ids")
        if self.source is not None:
            put(self, "source", checked_source(self.source))

    def _check_times(self) -> None:
        put = object.__setattr__
        put(self, "created_at", checks.instant("created_at", self.created_at))
        updated: datetime | None = self.updated_at
        put(self, "updated_at", checks.optional_instant("updated_at", updated) or self.created_at)
        for name in ("expires_at", "valid_from", "invalid_at"):
            if (given := getattr(self, name)) is not None:
                put(self, name, checks.instant(name, given))
        if self.updated_at < self.created_at:
            raise ValueError("updated_at: must not be before created_at")
        if self.expires_at is not None and self.expires_at <= self.created_at:
            raise ValueError("expires_at: must be after created_at")
        if self.valid_from and self.invalid_at and self.invalid_at <= self.valid_from:
            raise ValueError("invalid_at: must be after valid_from")

    def is_valid_at(self, instant: datetime) -> bool:
        """Inside ``[valid_from, invalid_at)``, each side open where missing."""
        moment = checks.instant("instant", instant)
        begun = self.valid_from is None or self.valid_from <= moment
        return begun and (self.invalid_at is None or moment < self.invalid_at)

    def is_expired_at(self, instant: datetime) -> bool:
        """Retention is over at `instant`."""
        return self.expires_at is not None and self.expires_at <= instant


def checked_source(value: object) -> str:
    """A source label: 1 to 128 letters, digits and ``_ . : @ / -``."""
    if not isinstance(value, str) or not 1 <= len(value) <= 128 or not _SOURCE.fullmatch(value):
        raise ValueError("source: must be 1 to 128 letters, digits and _ . : @ / -")
    return value


def identifiers(name: str, values: object) -> tuple[str, ...]:
    """Ids in order, each in NFC; ValueError unless a sequence of them."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name}: must be a sequence of ids")
    given: Iterable[object] = values
    return tuple(checks.identifier(name, value) for value in given)


def _member(name: str, kind: type[_Enum], value: object) -> _Enum:
    if type(value) is kind:
        return value
    try:
        return kind(str(value))
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise ValueError(f"{name}: must be one of {allowed}") from None
