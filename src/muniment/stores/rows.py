"""Memories and messages as rows, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.frozen import thaw
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import realm_of
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust

Row = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MEMORY_COLUMNS = (
    "memory_id, scope, memory_type, tenant, project, user, principal, session, run, agent,"
    " content, metadata, importance, created_at, updated_at, expires_at, valid_from, invalid_at,"
    " superseded_by, source_session_id, source_message_ids, derived_from, entity_ids,"
    " content_hash, trust, source"
)
MESSAGE_COLUMNS = (
    "message_id, role, content, created_at, token_count, tool_calls_json, tool_call_id,"
    " citations_json, run_id, partial, name"
)


def micros(instant: datetime) -> int:
    """Microseconds since 1970: exact for every instant that a datetime can hold."""
    return (instant - _EPOCH) // _MICROSECOND


def optional_micros(instant: datetime | None) -> int | None:
    """Like `micros`, with None for absent."""
    return None if instant is None else micros(instant)


def instant_of(stored: int) -> datetime:
    """The inverse of `micros`."""
    return _EPOCH + timedelta(microseconds=stored)


def _optional_instant(stored: int | None) -> datetime | None:
    return None if stored is None else instant_of(stored)


def dumps(value: object) -> str:
    """Compact JSON, for a column."""
    return json.dumps(thaw(value), ensure_ascii=False, separators=(",", ":"))


def memory_row(memory: Memory) -> dict[str, Any]:
    """The columns of a memory, its realm's session included."""
    owner = memory.owner
    return {
        "memory_id": memory.memory_id,
        "scope": memory.scope.value,
        "memory_type": memory.memory_type.value,
        "tenant": owner.tenant_id,
        "project": owner.project_id,
        "user": owner.user_id,
        "principal": owner.principal_id,
        "session": owner.session_id,
        "run": owner.run_id,
        "realm_session": realm_of(memory).session,
        "agent": memory.agent_id,
        "content": memory.content,
        "metadata": dumps(memory.metadata),
        "importance": memory.importance,
        "created_at": micros(memory.created_at),
        "updated_at": micros(memory.updated_at),
        "expires_at": optional_micros(memory.expires_at),
        "valid_from": optional_micros(memory.valid_from),
        "invalid_at": optional_micros(memory.invalid_at),
        "superseded_by": memory.superseded_by,
        "source_session_id": memory.source_session_id,
        "source_message_ids": dumps(memory.source_message_ids),
        "derived_from": dumps(memory.derived_from),
        "entity_ids": dumps(memory.entity_ids),
        "content_hash": memory.content_hash,
        "trust": memory.trust.rank,
        "source": memory.source,
    }


_TRUST = tuple(Trust)


def memory_of(row: Row) -> Memory:
    """A memory from its MEMORY_COLUMNS."""
    return Memory(
        memory_id=row[0],
        scope=MemoryScope(row[1]),
        memory_type=MemoryType(row[2]),
        owner=MemoryOwner(row[3], row[4], row[5], row[6], row[7], row[8]),
        agent_id=row[9],
        content=row[10],
        metadata=json.loads(row[11]),
        importance=row[12],
        created_at=instant_of(row[13]),
        updated_at=instant_of(row[14]),
        expires_at=_optional_instant(row[15]),
        valid_from=_optional_instant(row[16]),
        invalid_at=_optional_instant(row[17]),
        superseded_by=row[18],
        source_session_id=row[19],
        source_message_ids=tuple(json.loads(row[20])),
        derived_from=tuple(json.loads(row[21])),
        entity_ids=tuple(json.loads(row[22])),
        content_hash=row[23],
        trust=_TRUST[row[24]],
        source=row[25],
    )


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
    return ConversationMessage(
        row[0],
        ConversationRole(row[1]),
        row[2],
        instant_of(row[3]),
        token_count=row[4],
        tool_calls_json=row[5],
        tool_call_id=row[6],
        citations_json=row[7],
        run_id=row[8],
        partial=bool(row[9]),
        name=row[10],
    )
