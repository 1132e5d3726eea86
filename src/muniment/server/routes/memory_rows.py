"""Memories as they are told: provenance only of the caller's own rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from muniment.context.recall import RecalledMemory
from muniment.domain.frozen import thaw
from muniment.domain.memory import Memory
from muniment.domain.owner import owner_user
from muniment.server.identity import Caller


class Provenance(BaseModel):
    """Where a memory came from. Told only to whom it is of."""

    source: str | None
    source_session_id: str | None
    source_message_ids: list[str]
    derived_from: list[str]
    entity_ids: list[str]
    metadata: dict[str, Any]
    project_id: str | None
    session_id: str | None


class MemoryRow(BaseModel):
    """One memory. `own` says whether the caller wrote it, and then `provenance` is there."""

    memory_id: str
    scope: str
    memory_type: str
    content: str
    importance: float
    trust: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    valid_from: datetime | None
    invalid_at: datetime | None
    superseded_by: str | None
    own: bool
    provenance: Provenance | None


class Explained(MemoryRow):
    """A recalled memory; where it was asked for, its rank explained."""

    score: float | None = None
    relevance: float | None = None
    factors: Mapping[str, float] | None = None
    lanes: Mapping[str, float] | None = None


def memory_row(memory: Memory, caller: Caller) -> MemoryRow:
    """`memory` as `caller` is told it."""
    return MemoryRow(**_fields(memory, caller))


def explained(recalled: RecalledMemory, caller: Caller, *, explain: bool) -> Explained:
    """A recalled memory as `caller` is told it."""
    rank: dict[str, Any] = {}
    if explain:
        rank = {
            "score": recalled.score,
            "relevance": recalled.relevance,
            "factors": dict(recalled.factors),
            "lanes": dict(recalled.lanes),
        }
    return Explained(**_fields(recalled.memory, caller), **rank)


def _fields(memory: Memory, caller: Caller) -> dict[str, Any]:
    own = owner_user(memory.owner) == caller.user
    return {
        "memory_id": memory.memory_id,
        "scope": memory.scope.value,
        "memory_type": memory.memory_type.value,
        "content": memory.content,
        "importance": memory.importance,
        "trust": memory.trust.value,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "expires_at": memory.expires_at,
        "valid_from": memory.valid_from,
        "invalid_at": memory.invalid_at,
        "superseded_by": memory.superseded_by,
        "own": own,
        "provenance": _provenance(memory) if own else None,
    }


def _provenance(memory: Memory) -> Provenance:
    return Provenance(
        source=memory.source,
        source_session_id=memory.source_session_id,
        source_message_ids=list(memory.source_message_ids),
        derived_from=list(memory.derived_from),
        entity_ids=list(memory.entity_ids),
        metadata=thaw(memory.metadata),
        project_id=memory.owner.project_id,
        session_id=memory.owner.session_id,
    )
