"""The rows of an in-process store, and the images of them that ranking reads."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Any

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey
from muniment.domain.visibility import message_audience
from muniment.domain.working import WorkingKey
from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.evidence.weights import DEFAULT_NAME, ranking_named
from muniment.governance import events
from muniment.governance.audit_record import AuditEntry
from muniment.governance.events import Records
from muniment.governance.quotas import Totals
from muniment.governance.usage import ServedCounts
from muniment.lexical.indexing import index_text
from muniment.stores.in_memory.trail import Trail
from muniment.stores.limits import Limits
from muniment.stores.recalled import is_searchable
from muniment.stores.supersession import handed_back, is_live

ConversationKey = tuple[str, str, str]  # tenant, user, session


@dataclass(slots=True)
class MemoryRow:
    """A memory under its audience; `order` is its arrival, `sources` those it is derived from."""

    order: int
    audience: str
    memory: Memory
    digest: str
    vector: bytes | None
    tokens: int
    sources: frozenset[int]

    @property
    def tenant(self) -> str:
        """Whose quota it takes from."""
        return self.memory.owner.tenant_id


@dataclass(slots=True)
class MessageRow:
    """A message in its place of arrival."""

    order: int
    arrived_at: datetime
    message: ConversationMessage
    vector: bytes | None = None


@dataclass(slots=True)
class Conversation:
    """One user's session; `order` is its making in the order of all arrivals."""

    identity: ConversationIdentity
    kind: str
    order: int
    created_at: datetime
    title: str | None = None
    titled_by_hand: bool = False
    messages: dict[str, MessageRow] = field(default_factory=dict[str, MessageRow])

    @property
    def audience(self) -> str:
        """Who may recall its messages."""
        return message_audience(self.identity.tenant_id, self.identity.user_id)

    @property
    def realm(self) -> RealmKey:
        """Where it belongs."""
        return events.conversation_realm(self.identity)


@dataclass(frozen=True, slots=True)
class WorkingRow:
    """One run's state until `expires_at`."""

    state: Mapping[str, Any]
    expires_at: datetime


class Tables:
    """All rows. Whoever reads or writes holds `lock`; every write keeps the images in step."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        limits: Limits,
        trail: Trail | None = None,
        *,
        ranking: str = DEFAULT_NAME,
    ) -> None:
        self.ranking_name, self.ranking = ranking, ranking_named(ranking)
        self.clock = clock
        self.limits = limits
        self._trail = trail
        self.lock = threading.RLock()
        self.memories: dict[tuple[str, str], MemoryRow] = {}
        self.conversations: dict[ConversationKey, Conversation] = {}
        self.working: dict[WorkingKey, WorkingRow] = {}
        self.images: defaultdict[str, Corpus] = defaultdict(Corpus)
        self.leases: dict[ConversationKey, tuple[str, datetime]] = {}
        self.on_conversation_gone: list[Callable[[ConversationKey], None]] = []
        self.served = ServedCounts(clock)
        self._totals: defaultdict[str, Totals] = defaultdict(Totals)
        self._arrivals = itertools.count(1)

    @asynccontextmanager
    async def change(self, *, may_wait: bool = False) -> AsyncIterator[Records]:
        """Hold `lock` for one write of memories or conversations, during which nothing awaits.

        What it records is in the log once the block is left, and dropped where the block fails.
        Where the log is damaged or missing, AuditError before the block; a change that
        `may_wait` goes on, its records waiting.
        """
        if self._trail is None:
            with self.lock:
                yield Records(None, self.clock())
            return
        if not may_wait:
            await self._trail.require_log()
        noted: list[AuditEntry] = []
        with self.lock:
            yield Records(noted.append, self.clock())
            self._trail.add(noted)
        await self._trail.settle()

    def arrival(self) -> int:
        """The next place in the order of arrival."""
        return next(self._arrivals)

    def visible(self, keys: Iterable[str]) -> list[MemoryRow]:
        """Every row of these audiences: the one predicate of reading by visibility."""
        allowed = frozenset(keys)
        return [row for row in self.memories.values() if row.audience in allowed]

    def put(
        self,
        audience: str,
        memory: Memory,
        digest: str,
        vector: bytes | None,
        sources: frozenset[int] | None = None,
    ) -> MemoryRow:
        """Insert a row, or update the one of this id in its audience; QuotaExceededError.

        Without `sources`, it is derived from what it was derived from.
        """
        held = self.memories.get((audience, memory.memory_id))
        if sources is None:
            sources = frozenset() if held is None else held.sources
        order = self.arrival() if held is None else held.order
        tokens = self.limits.count(memory.content)
        row = MemoryRow(order, audience, memory, digest, vector, tokens, sources)
        self._count(held, row)
        self.memories[audience, memory.memory_id] = row
        self.images[audience].upsert([memory_image(row)])
        return row

    def still_named(self, orders: Iterable[int], names: Collection[str]) -> list[int]:
        """Those of these rows that are there and whose id is among `names`."""
        wanted = frozenset(orders)
        rows = [row for row in self.memories.values() if row.order in wanted] if wanted else []
        return [row.order for row in rows if row.memory.memory_id in names]

    def _count(self, old: MemoryRow | None, new: MemoryRow | None) -> None:
        """Count a row in place of another; QuotaExceededError before anything changed."""
        changed: dict[str, Totals] = {}
        for row, sign in ((old, -1), (new, 1)):
            if row is not None:
                held = changed.get(row.tenant, self._totals[row.tenant])
                changed[row.tenant] = Totals(held.entries + sign, held.tokens + sign * row.tokens)
        if new is not None:
            self.limits.quotas.check(self._totals[new.tenant], changed[new.tenant])
        self._totals.update(changed)

    def require_room(self, tenant: str, contents: Iterable[str]) -> None:
        """QuotaExceededError unless these texts may all be added."""
        before, costs = self._totals[tenant], [self.limits.count(each) for each in contents]
        after = Totals(before.entries + len(costs), before.tokens + sum(costs))
        self.limits.quotas.check(before, after)

    def replace(self, row: MemoryRow, memory: Memory) -> MemoryRow:
        """The same row with other fields; its content and vector stay."""
        return self.put(row.audience, memory, row.digest, row.vector)

    def close(self, change: Records, audience: str, rows: Sequence[Memory]) -> None:
        """Put the rows of a succession in their places; the first is the one that was replaced."""
        for row in rows:
            self.replace(self.memories[audience, row.memory_id], row)
        for row in rows[:1]:
            change.record_memory(events.MEMORY_SUPERSEDED, row, superseded_by=row.superseded_by)

    def delete(self, change: Records, row: MemoryRow) -> None:
        """Remove a row, and record it."""
        reopened = self.remove(row)
        change.record_memory(events.MEMORY_DELETED, row.memory)
        for memory in reopened:
            change.record_memory(events.MEMORY_REOPENED, memory)

    def remove(self, row: MemoryRow) -> list[Memory]:
        """Delete a row; what it had replaced is current again, unless it is so already."""
        self.drop(row)
        current: list[Memory] = []
        for prior in self.predecessors(row):
            reopened = handed_back(prior.memory, row.memory)
            if reopened.superseded_by is not None or not self._said_again(prior):
                current.append(self.replace(prior, reopened).memory)
        return current

    def drop(self, row: MemoryRow) -> None:
        """Delete a row; what it had replaced stays closed."""
        self._count(row, None)
        del self.memories[row.audience, row.memory.memory_id]
        self.images[row.audience].remove([row.order])

    def predecessors(self, row: MemoryRow) -> list[MemoryRow]:
        """The rows that `row` replaced, in order of arrival."""
        beside = self.visible([row.audience])
        return [prior for prior in beside if prior.memory.superseded_by == row.memory.memory_id]

    def _said_again(self, prior: MemoryRow) -> bool:
        now = self.clock()
        return any(
            row.digest == prior.digest and is_live(row.memory, now)
            for row in self.visible([prior.audience])
            if row is not prior
        )

    def add_messages(self, conversation: Conversation, rows: Iterable[MessageRow]) -> None:
        """Put messages at a conversation's end."""
        added = list(rows)
        conversation.messages.update((row.message.message_id, row) for row in added)
        self.show_messages(conversation, added)

    def show_messages(self, conversation: Conversation, rows: Iterable[MessageRow]) -> None:
        """Bring the image of a user's messages up to date with these rows."""
        session = conversation.identity.session_id
        shown = [_message_image(row, session) for row in rows if is_searchable(row.message)]
        self.images[conversation.audience].upsert(shown)

    def clear_messages(self, conversation: Conversation) -> int:
        """Delete a conversation's messages; how many there were."""
        gone = [row.order for row in conversation.messages.values()]
        self.images[conversation.audience].remove(gone)
        conversation.messages.clear()
        return len(gone)

    def sessions_of(self, tenant: str) -> list[Conversation]:
        """A tenant's conversations."""
        return [each for key, each in self.conversations.items() if key[0] == tenant]

    def remove_conversation(self, conversation: Conversation) -> int:
        """Delete a conversation and whatever ends with it; how many messages it had."""
        messages = self.clear_messages(conversation)
        key = key_of(conversation.identity)
        del self.conversations[key]
        for told in self.on_conversation_gone:
            told(key)
        return messages


def key_of(identity: ConversationIdentity) -> ConversationKey:
    """What a conversation is kept under."""
    return identity.tenant_id, identity.user_id, identity.session_id


def _seconds(instant: datetime | None, missing: float) -> float:
    return missing if instant is None else instant.timestamp()


def memory_image(row: MemoryRow) -> CorpusRow:
    """A memory as ranking reads it."""
    memory = row.memory
    return CorpusRow(
        key=row.order,
        kind=memory.memory_type.value,
        indexed=index_text(memory.content),
        at=memory.updated_at.timestamp(),
        order=row.order,
        valid_from=_seconds(memory.valid_from, -inf),
        invalid_at=_seconds(memory.invalid_at, inf),
        expires_at=_seconds(memory.expires_at, inf),
        trust=memory.trust.rank,
        vector=row.vector,
        importance=memory.importance,
    )


def _message_image(row: MessageRow, session: str) -> CorpusRow:
    message = row.message
    return CorpusRow(
        key=row.order,
        kind=MESSAGE,
        indexed=index_text(message.content, name=message.name),
        at=message.created_at.timestamp(),
        order=row.order,
        session=session,
        role=message.role.value,
        vector=row.vector,
    )
