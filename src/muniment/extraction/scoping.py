"""Reading what a model proposed into what may be stored: scope, type, importance."""

from __future__ import annotations

import math

from muniment.context.candidates import RECALLED_TYPES
from muniment.context.policy import MemoryPolicy
from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner, scope_query_owner
from muniment.domain.scope import MemoryScope


def written_scope(requested: str, owner: MemoryOwner, policy: MemoryPolicy) -> MemoryScope:
    """Where a fact is written: what is too wide, unreadable or not addressable is the session's."""
    try:
        scope = policy.write_scope(MemoryScope(requested.strip().lower()))
    except ValueError:
        return MemoryScope.SESSION
    return scope if scope_query_owner(owner, scope) is not None else MemoryScope.SESSION


def read_type(requested: str) -> MemoryType:
    """The proposed type; unknown ones, and those that are not facts, become FACT."""
    try:
        kind = MemoryType(requested.strip().lower())
    except ValueError:
        return MemoryType.FACT
    return kind if kind in RECALLED_TYPES else MemoryType.FACT


def clamp_importance(value: float) -> float:
    """`value` within 0..1; not-a-number is 0."""
    return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))
