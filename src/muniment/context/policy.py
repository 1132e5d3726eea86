"""How much memory a turn may use, and what it may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from muniment.domain import checks
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import MemoryConfigurationError

DEFAULT_RECALL_SCOPES = (
    MemoryScope.USER,
    MemoryScope.PROJECT,
    MemoryScope.SESSION,
    MemoryScope.TENANT,
)
RECALL_MESSAGES = ("off", "session", "user")
BLOCK_OVERFLOW = ("stop", "skip")
MAX_RETENTION_DAYS = 36_500

_WRITABLE = (MemoryScope.USER, MemoryScope.SESSION)


@dataclass(frozen=True, slots=True)
class MemoryRetention:
    """Days until a memory expires, by scope, 0..36500; 0 never. RUN follows SESSION; TENANT and
    GLOBAL never expire. MemoryConfigurationError for anything else."""

    session_days: int = 0
    user_days: int = 0
    project_days: int = 0

    def __post_init__(self) -> None:
        for name in ("session_days", "user_days", "project_days"):
            _checked(name, getattr(self, name), _whole(0, MAX_RETENTION_DAYS))

    def days(self, scope: MemoryScope) -> int:
        """Days that a memory of `scope` is kept; 0 is for ever."""
        by_scope = {
            MemoryScope.RUN: self.session_days,
            MemoryScope.SESSION: self.session_days,
            MemoryScope.USER: self.user_days,
            MemoryScope.PROJECT: self.project_days,
        }
        return by_scope.get(MemoryScope(scope), 0)

    def expires_at(self, scope: MemoryScope, now: datetime) -> datetime | None:
        """When a memory of `scope` written at `now` expires; None for never."""
        days = self.days(scope)
        try:
            return now + timedelta(days=days) if days else None
        except OverflowError:
            return None


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """The bounds of one turn. MemoryConfigurationError names a field that does not fit.

    Tokens, messages and counts are whole numbers, fractions lie in 0..1, times are in seconds.
    """

    enabled: bool = True
    recent_max_messages: int = 12
    recent_max_tokens: int = 2000
    summary_trigger_fraction: float = 0.7
    summary_keep_messages: int = 8
    recall_top_k: int = 6
    recall_scopes: tuple[MemoryScope, ...] = DEFAULT_RECALL_SCOPES
    recency_half_life_hours: float = 168.0
    block_budget_fraction: float = 0.15
    query_rewrite: bool = True
    extraction_min_importance: float = 0.3
    dedup_threshold: float = 0.92
    entity_confidence_floor: float = 0.5
    entity_overlap_weight: float = 0.5
    type_affinity_weight: float = 0.5
    extraction_project_scope: bool = False
    retention: MemoryRetention = field(default_factory=MemoryRetention)
    min_trust: Trust = Trust.UNTRUSTED
    recall_messages: str = "off"
    call_timeout_seconds: float = 10.0
    turn_timeout_seconds: float = 30.0
    block_overflow: str = "stop"
    extraction_enabled: bool = True

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, _checked(name, getattr(self, name), check))
        if self.summary_keep_messages > self.recent_max_messages:
            raise MemoryConfigurationError(
                "summary_keep_messages: must not be above recent_max_messages"
            )

    @classmethod
    def disabled(cls) -> MemoryPolicy:
        """A four-message window: no model call, no recall, no write."""
        return cls(
            enabled=False,
            recent_max_messages=4,
            summary_keep_messages=4,
            recall_top_k=0,
            query_rewrite=False,
            extraction_enabled=False,
        )

    def write_scope(self, requested: MemoryScope) -> MemoryScope:
        """Where model output that asks for `requested` may be written: USER and SESSION as
        asked, PROJECT where the policy lets it, everything else SESSION."""
        scope = MemoryScope(requested)
        allowed = scope in _WRITABLE or (
            scope is MemoryScope.PROJECT and self.extraction_project_scope
        )
        return scope if allowed else MemoryScope.SESSION

    @property
    def block_tokens(self) -> int:
        """Tokens that the block of recalled memories may take."""
        return int(self.block_budget_fraction * self.recent_max_tokens)


Check = Callable[[str, Any], Any]


def _checked(name: str, value: object, check: Check) -> Any:
    try:
        return check(name, value)
    except ValueError as error:
        raise MemoryConfigurationError(str(error)) from None


def _whole(low: int, high: int) -> Check:
    return partial(checks.whole, low=low, high=high)


def _finite(low: float, high: float) -> Check:
    return partial(checks.finite, low=low, high=high)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: must be true or false")
    return value


def _one_of(*allowed: str) -> Check:
    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name}: must be one of {', '.join(allowed)}")
        return str(value)

    return check


def _scopes(name: str, value: object) -> tuple[MemoryScope, ...]:
    allowed = ", ".join(MemoryScope)
    if isinstance(value, str) or not isinstance(value, (tuple, list)):
        raise ValueError(f"{name}: must be a sequence of {allowed}")
    try:
        scopes = tuple(MemoryScope(scope) for scope in value)
    except ValueError:
        raise ValueError(f"{name}: must be of {allowed}") from None
    if len(set(scopes)) != len(scopes):
        raise ValueError(f"{name}: must not repeat a scope")
    return scopes


def _trust(name: str, value: object) -> Trust:
    try:
        return Trust(str(value))
    except ValueError:
        raise ValueError(f"{name}: must be one of {', '.join(Trust)}") from None


def _retention(name: str, value: object) -> MemoryRetention:
    if not isinstance(value, MemoryRetention):
        raise ValueError(f"{name}: must be a MemoryRetention")
    return value


_CHECKS: dict[str, Check] = {
    "enabled": _flag,
    "recent_max_messages": _whole(1, 1000),
    "recent_max_tokens": _whole(1, 10_000_000),
    "summary_trigger_fraction": _finite(0.0, 1.0),
    "summary_keep_messages": _whole(1, 1000),
    "recall_top_k": _whole(0, 1000),
    "recall_scopes": _scopes,
    "recency_half_life_hours": _finite(0.001, 10_000_000),
    "block_budget_fraction": _finite(0.0, 1.0),
    "query_rewrite": _flag,
    "extraction_min_importance": _finite(0.0, 1.0),
    "dedup_threshold": _finite(0.5, 1.0),
    "entity_confidence_floor": _finite(0.0, 1.0),
    "entity_overlap_weight": _finite(0.0, 2.0),
    "type_affinity_weight": _finite(0.0, 2.0),
    "extraction_project_scope": _flag,
    "retention": _retention,
    "min_trust": _trust,
    "recall_messages": _one_of(*RECALL_MESSAGES),
    "call_timeout_seconds": _finite(0.001, 3600.0),
    "turn_timeout_seconds": _finite(0.001, 3600.0),
    "block_overflow": _one_of(*BLOCK_OVERFLOW),
    "extraction_enabled": _flag,
}
