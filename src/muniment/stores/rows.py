"""Memories and messages as rows, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from muniment.domain import checks
from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.frozen import freeze_mapping, thaw
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import realm_session
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.unchecked import unchecked

Row = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MEMORY_COLUMNS = (
    "memory_id, scope, memory_type, tenant, project, user, principal, session, run, agent,"
    " content, metadata, importance, created_at, updated_at, expires_at, valid_from, invalid_at,"
    " superseded_by, source_session_id, source_message_ids, derived_from, entity_ids,"
    " content_hash, trust, source"
)
ROW_COLUMNS = (
    "memory_id, scope, memory_type, tenant, project, user, principal, session, run, realm_session,"
    " agent, content, metadata, importance, created_at, updated_at, expires_at, valid_from,"
    " invalid_at, superseded_by, source_session_id, source_message_ids, derived_from, entity_ids,"
    " content_hash, trust, source"
)
"""The columns that `memory_row` fills, in its order."""
MESSAGE_COLUMNS = (
    "message_id, role, content, created_at, token_count, tool_calls_json, tool_call_id,"
    " citations_json, run_id, partial, name"
)


def askable(name: object) -> str:
    """An id as a parameter; one that no text column can hold becomes one that no row has."""
    try:
        return checks.encodable("id", str(name))
    except ValueError:
        return ""


def micros(instant: datetime) -> int:
    """Microseconds since 1970: exact for every instant that a datetime can hold."""
    return (instant - _EPOCH) // _MICROSECOND


def optional_micros(instant: datetime | None) -> int | None:
    """Like `micros`, with None for absent."""
    return None if instant is None else micros(instant)


def instant_of(stored: int) -> datetime:
    """The inverse of `micros`."""
    return _EPOCH + timedelta(0, 0, stored)


def _optional_instant(stored: int | None) -> datetime | None:
    return None if stored is None else instant_of(stored)


def dumps(value: object) -> str:
    """Compact JSON, for a column."""
    if not value and isinstance(value, (tuple, Mapping)):
        return "[]" if isinstance(value, tuple) else "{}"
    return json.dumps(thaw(value), ensure_ascii=False, separators=(",", ":"))


def memory_row(memory: Memory) -> dict[str, Any]:
    """The columns of a memory, its realm's session included."""
    owner, created = memory.owner, micros(memory.created_at)
    changed = created if memory.updated_at is memory.created_at else micros(memory.updated_at)
    return {
        "memory_id": memory.memory_id,
        "scope": str(memory.scope),
        "memory_type": str(memory.memory_type),
        "tenant": owner.tenant_id,
        "project": owner.project_id,
        "user": owner.user_id,
        "principal": owner.principal_id,
        "session": owner.session_id,
        "run": owner.run_id,
        "realm_session": realm_session(memory),
        "agent": memory.agent_id,
        "content": memory.content,
        "metadata": dumps(memory.metadata) if memory.metadata else "{}",
        "importance": memory.importance,
        "created_at": created,
        "updated_at": changed,
        "expires_at": memory.expires_at and micros(memory.expires_at),
        "valid_from": memory.valid_from and micros(memory.valid_from),
        "invalid_at": memory.invalid_at and micros(memory.invalid_at),
        "superseded_by": memory.superseded_by,
        "source_session_id": memory.source_session_id,
        "source_message_ids": dumps(memory.source_message_ids)
        if memory.source_message_ids
        else "[]",
        "derived_from": dumps(memory.derived_from) if memory.derived_from else "[]",
        "entity_ids": dumps(memory.entity_ids) if memory.entity_ids else "[]",
        "content_hash": memory.content_hash,
        "trust": _RANKS[memory.trust],
        "source": memory.source,
    }


# What a column held when it was written was checked then, so that reading a row back need not.
_memory, _message = unchecked(Memory), unchecked(ConversationMessage)
_owner = lru_cache(maxsize=1_024)(MemoryOwner)
_TRUST = tuple(Trust)
_RANKS = {trust: trust.rank for trust in Trust}
_SCOPES = {scope.value: scope for scope in MemoryScope}
_TYPES = {kind.value: kind for kind in MemoryType}
_ROLES = {role.value: role for role in ConversationRole}
_NOTHING = freeze_mapping("metadata", {})


def memory_of(row: Row) -> Memory:
    """A memory from its MEMORY_COLUMNS."""
    return _memory(
        row[0],
        _SCOPES[row[1]],
        _TYPES[row[2]],
        _owner(row[3], row[4], row[5], row[6], row[7], row[8]),
        row[10],
        _metadata_of(row[11]),
        row[12],
        instant_of(row[13]),
        instant_of(row[14]),
        _optional_instant(row[15]),
        _optional_instant(row[16]),
        _optional_instant(row[17]),
        row[18],
        row[19],
        _list_of(row[20]),
        _list_of(row[21]),
        _list_of(row[22]),
        row[23],
        _TRUST[row[24]],
        row[25],
        row[9],
    )


def _metadata_of(stored: str) -> Mapping[str, Any]:
    return _NOTHING if stored == "{}" else freeze_mapping("metadata", json.loads(stored))


def _list_of(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else tuple(json.loads(stored))


def message_row(message: ConversationMessage) -> Row:
    """A message as its MESSAGE_COLUMNS."""
    return (
        message.message_id,
        message.role.value,
        message.content,
        micros(message.created_at),
        message.token_count,
        message.tool_calls_json,
        message.tool_call_id,
        message.citations_json,
        message.run_id,
        int(message.partial),
        message.name,
    )


def message_of(row: Row) -> ConversationMessage:
    """A message from its MESSAGE_COLUMNS."""
    partial, name = bool(row[9]), row[10]
    return _message(row[0], _ROLES[row[1]], row[2], instant_of(row[3]), *row[4:9], partial, name)
