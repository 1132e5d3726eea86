"""What the stores record: the names of events, and what each says about a change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from muniment.domain.conversation import ConversationIdentity
from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey, realm_of
from muniment.domain.scope import MemoryScope
from muniment.governance.audit_record import AuditEntry

MEMORY_SAVED = "memory.saved"
MEMORY_UPDATED = "memory.updated"
MEMORY_SUPERSEDED = "memory.superseded"
MEMORY_REOPENED = "memory.reopened"
MEMORY_DELETED = "memory.deleted"
MEMORIES_IMPORTED = "memories.imported"
MEMORIES_SWEPT = "memories.swept"
AUDIT_RESTARTED = "audit.restarted"
REALM_ERASED = "realm.erased"
CONVERSATION_CREATED = "conversation.created"
CONVERSATION_APPENDED = "conversation.appended"
CONVERSATION_CLEARED = "conversation.cleared"
CONVERSATION_DELETED = "conversation.deleted"
CONVERSATION_RENAMED = "conversation.renamed"

_ID_BYTES_A_RECORD = 40_000  # as JSON; the rest of the 64 KiB is for realm and counts
_KEYED_ON = {MemoryScope.PROJECT: "project_id", MemoryScope.RUN: "run_id"}


class Records:
    """Notes for the audit log what one change does: ids and counts, never text.

    `keep` is given each entry, in order; None where no log is configured, and nothing is made.
    `now` is the instant of the change, aware.
    """

    __slots__ = ("_keep", "now")

    def __init__(self, keep: Callable[[AuditEntry], None] | None, now: datetime) -> None:
        self._keep = keep
        self.now = now

    @property
    def audited(self) -> bool:
        """Whether anybody keeps what is noted."""
        return self._keep is not None

    def record(self, event: str, realm: RealmKey | None, **data: Any) -> str | None:
        """Note one event; the id of its record, None where no log is configured.

        AuditError for data that is not fit for a record: ids, counts, at most 64 KiB of JSON.
        """
        if self._keep is None:
            return None
        entry = AuditEntry.checked(new_record_id(), instant_text(self.now), event, realm, data)
        self._keep(entry)
        return entry.id

    def record_memory(self, event: str, memory: Memory, **data: Any) -> None:
        """Note what happened to one memory; its realm, id and scope are found here."""
        if self._keep is not None:
            self.record(event, realm_of(memory), **memory_data(memory), **data)

    def record_ids(
        self, event: str, realm: RealmKey | None, ids: Sequence[str], **data: Any
    ) -> None:
        """Note one event about many memories: as many records as their ids need, in parts."""
        if self._keep is None:
            return
        for part in _parts(ids):
            self.record(event, realm, count=len(part), memory_ids=part, **data)


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    part, size = list[str](), 0
    for each in ids:
        cost = len(json.dumps(each)) + 1
        if part and size + cost > _ID_BYTES_A_RECORD:
            yield part
            part, size = [], 0
        part.append(each)
        size += cost
    if part:
        yield part


def memory_data(memory: Memory) -> dict[str, Any]:
    """What tells a memory from every other of its realm."""
    data: dict[str, Any] = {"memory_id": memory.memory_id, "scope": memory.scope.value}
    keyed_on = _KEYED_ON.get(memory.scope)
    if keyed_on is not None:
        data[keyed_on] = getattr(memory.owner, keyed_on)
    return data


def conversation_realm(identity: ConversationIdentity) -> RealmKey:
    """Where a conversation belongs."""
    return RealmKey(identity.tenant_id, identity.user_id, None, identity.session_id)


def new_record_id() -> str:
    """An id that no other record has: 32 lower-case hexadecimal digits."""
    return uuid4().hex


def instant_text(instant: datetime) -> str:
    """An aware instant as records write it: ISO 8601 in UTC, to the microsecond."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds")
