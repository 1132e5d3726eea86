"""A fact as a memory: whose, from where, since when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muniment.context.policy import MemoryPolicy
from muniment.domain.content import content_hash
from muniment.domain.conversation import ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, with_user
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.domain.visibility import audience_key

EXTRACTION_SOURCE = "extraction"


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn that facts are taken from: its owner, its messages' ids, and the instant."""

    owner: MemoryOwner
    message_ids: tuple[str, ...]
    spoken_at: datetime
    now: datetime

    @classmethod
    def of(cls, owner: MemoryOwner, messages: Sequence[ConversationMessage], now: datetime) -> Turn:
        """The turn of `messages` (at least one), read at `now`."""
        ids = tuple(message.message_id for message in messages)
        return cls(with_user(owner), ids, messages[-1].created_at, now)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a fact says, checked: ready to be stored."""

    content: str
    memory_type: MemoryType
    scope: MemoryScope
    importance: float
    entity_ids: tuple[str, ...] = ()


def extracted_memory(
    statement: Statement, turn: Turn, policy: MemoryPolicy, metadata: Mapping[str, Any]
) -> Memory:
    """`statement` as a memory of trust `model`; ValueError where it cannot be one."""
    identity = content_hash(statement.content, statement.scope)
    return Memory(
        memory_id=fact_id(turn, statement.scope, identity),
        scope=statement.scope,
        memory_type=statement.memory_type,
        owner=turn.owner,
        content=statement.content,
        metadata=metadata,
        importance=statement.importance,
        created_at=turn.now,
        expires_at=policy.retention.expires_at(statement.scope, turn.now),
        valid_from=turn.now,
        source_session_id=turn.owner.session_id,
        source_message_ids=turn.message_ids,
        entity_ids=statement.entity_ids,
        content_hash=identity,
        trust=Trust.MODEL,
        source=EXTRACTION_SOURCE,
    )


def fact_id(turn: Turn, scope: MemoryScope, identity: str) -> str:
    """One id for one fact of one turn, so that a retried turn is recognised for ever.

    It begins with the turn's time, hence sorts by it.
    """
    parts = [audience_key(scope, turn.owner), identity, turn.owner.session_id, *turn.message_ids]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    moment = max(0, int(turn.spoken_at.timestamp() * 1000))
    return f"mem_{moment:012x}{digest[:24]}"
