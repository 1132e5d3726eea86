"""Memories, messages and conversations as JSON values: times in ISO 8601, UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from muniment.context.recall import RecalledMemory
from muniment.domain.conversation import ConversationMessage, ConversationSummaryRow
from muniment.domain.frozen import thaw
from muniment.domain.memory import Memory


def iso(instant: datetime | None) -> str | None:
    """`instant` in ISO 8601, None for None."""
    return None if instant is None else instant.isoformat()


def memory_record(memory: Memory) -> dict[str, Any]:
    """All of a memory but its owner's fields, which the caller named."""
    return {
        "memory_id": memory.memory_id,
        "content": memory.content,
        "memory_type": memory.memory_type.value,
        "scope": memory.scope.value,
        "trust": memory.trust.value,
        "importance": memory.importance,
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "expires_at": iso(memory.expires_at),
        "valid_from": iso(memory.valid_from),
        "invalid_at": iso(memory.invalid_at),
        "superseded_by": memory.superseded_by,
        "source": memory.source,
        "source_session_id": memory.source_session_id,
        "source_message_ids": list(memory.source_message_ids),
        "metadata": thaw(memory.metadata),
    }


def recalled_record(recalled: RecalledMemory, *, explain: bool) -> dict[str, Any]:
    """A recalled memory, with its rank explained where asked."""
    record = memory_record(recalled.memory)
    if explain:
        record["score"] = recalled.score
        record["relevance"] = recalled.relevance
        record["factors"] = dict(recalled.factors)
        record["lanes"] = dict(recalled.lanes)
    return record


def message_record(message: ConversationMessage) -> dict[str, Any]:
    """A message; what is absent is left out."""
    fields = {
        "message_id": message.message_id,
        "role": message.role.value,
        "name": message.name,
        "content": message.content,
        "created_at": iso(message.created_at),
        "tool_calls_json": message.tool_calls_json,
        "tool_call_id": message.tool_call_id,
        "partial": message.partial or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def conversation_record(row: ConversationSummaryRow) -> dict[str, Any]:
    """One conversation of a list."""
    return {
        "session_id": row.session_id,
        "kind": row.kind,
        "title": row.title,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "messages": row.message_count,
    }
