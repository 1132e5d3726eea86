"""Conversations in this process: messages by arrival, sessions, titles and the directory."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from muniment.domain import checks
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
    ConversationSummaryRow,
    complete_message_pairs,
)
from muniment.domain.cursor import open_cursor, seal_cursor
from muniment.domain.memory import MemoryType
from muniment.domain.realm import realm_of
from muniment.domain.scope import MemoryScope
from muniment.errors import NotFoundError
from muniment.governance import events
from muniment.governance.events import Records, conversation_realm
from muniment.stores.conversation_face import Conversations, Given
from muniment.stores.embedding import RowEmbedder
from muniment.stores.in_memory.tables import Conversation, MemoryRow, MessageRow, Tables, key_of
from muniment.stores.messages import PAGE, embedded, fresh

_MOST = 1_000_000
_MOST_ARRIVALS = 1 << 62
MAX_SESSIONS = 10_000  # a tenant: this store is bounded, and nobody else pays for it


class InMemoryConversations(Conversations):
    """The conversation face of an in-process store."""

    most_messages = _MOST

    def __init__(
        self, tables: Tables, embedder: RowEmbedder, *, max_sessions: int = MAX_SESSIONS
    ) -> None:
        super().__init__(embedder)
        self._max_sessions = checks.whole("max_sessions", max_sessions, low=1, high=_MOST)
        self._tables = tables
        self._secret = secrets.token_bytes(32)

    async def _append(
        self, identity: ConversationIdentity, messages: Sequence[Given], lease: str | None
    ) -> None:
        async with self._tables.change() as change:
            if lease is not None and self._tables.leases.get(key_of(identity), ("",))[0] != lease:
                raise NotFoundError("no such session")
            new = fresh(self._messages(identity), messages)
            rows = [MessageRow(self._tables.arrival(), change.now, *given) for given in new]
            conversation = self._opened(change, identity)
            self._tables.add_messages(conversation, rows)
            if rows:
                counts = {"messages": len(rows)}
                change.record(events.CONVERSATION_APPENDED, conversation.realm, **counts)

    async def _recent(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        return self._messages(identity)[-limit:]

    async def _recent_pairs(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        pairs = complete_message_pairs(self._messages(identity), limit=limit)
        return tuple(message for pair in pairs for message in pair)

    async def _after(
        self, identity: ConversationIdentity, message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...] | None:
        messages = self._messages(identity)
        if message_id is None:
            return messages[:limit]
        ids = [message.message_id for message in messages]
        if message_id not in ids:
            return None
        start = ids.index(message_id) + 1
        return messages[start : start + limit]

    async def _clear(self, identity: ConversationIdentity) -> None:
        async with self._tables.change(may_wait=True) as change:
            for row in self._of_session(identity):
                summary = row.memory.memory_type is MemoryType.SUMMARY
                if summary and row.memory.scope is MemoryScope.SESSION:
                    self._tables.delete(change, row)
            conversation = self._held(identity)
            if conversation is not None:
                counts = {"messages": self._tables.clear_messages(conversation)}
                change.record(events.CONVERSATION_CLEARED, conversation.realm, **counts)

    async def _create(self, identity: ConversationIdentity, kind: str, title: str | None) -> None:
        async with self._tables.change() as change:
            if self._held(identity) is None:
                conversation = self._opened(change, identity, kind)
                conversation.title, conversation.titled_by_hand = title, title is not None

    async def _session(self, identity: ConversationIdentity) -> tuple[str, str | None] | None:
        conversation = self._held(identity)
        return None if conversation is None else (conversation.kind, conversation.title)

    async def _delete(self, identity: ConversationIdentity) -> bool:
        async with self._tables.change(may_wait=True) as change:
            conversation = self._held(identity)
            if conversation is None:
                return False
            self._remove(change, conversation)
            return True

    async def _page(
        self, mine: tuple[str, str], kind: str | None, cursor: str | None, limit: int
    ) -> ConversationPage:
        with self._tables.lock:
            snapshot, before = self._position(cursor)
            held = [
                (_activity(conversation, snapshot), conversation)
                for key, conversation in self._tables.conversations.items()
                if key[:2] == mine
                and kind in (None, conversation.kind)
                and conversation.order <= snapshot
            ]
        rest = sorted((pair for pair in held if pair[0] < before), key=lambda pair: -pair[0])
        page = rest[:limit]
        more = len(rest) > limit
        return ConversationPage(
            tuple(_line(conversation, snapshot) for _, conversation in page),
            seal_cursor(self._secret, PAGE, snapshot, page[-1][0]) if more else None,
        )

    async def _title(
        self, identity: ConversationIdentity, title: str | None, *, by_hand: bool
    ) -> bool:
        async with self._tables.change() as change:
            conversation = self._held(identity)
            if conversation is None or (conversation.titled_by_hand and not by_hand):
                return False
            conversation.title, conversation.titled_by_hand = title, by_hand
            change.record(events.CONVERSATION_RENAMED, conversation.realm, by_hand=by_hand)
            return True

    def _held(self, identity: ConversationIdentity) -> Conversation | None:
        return self._tables.conversations.get(key_of(identity))

    def _opened(
        self, change: Records, identity: ConversationIdentity, kind: str = "chat"
    ) -> Conversation:
        key = key_of(identity)
        if key not in self._tables.conversations:
            made = Conversation(identity, kind, self._tables.arrival(), change.now)
            self._make_room(change, identity.tenant_id)
            self._tables.conversations[key] = made
            change.record(events.CONVERSATION_CREATED, made.realm, kind=kind)
        return self._tables.conversations[key]

    def _make_room(self, change: Records, tenant: str) -> None:
        """Evict the tenant's own longest unused session where it has as many as it may."""
        mine = self._tables.sessions_of(tenant)
        if len(mine) >= self._max_sessions:
            self._remove(change, min(mine, key=lambda each: _activity(each, _MOST_ARRIVALS)))

    def _remove(self, change: Records, conversation: Conversation) -> None:
        messages = self._tables.remove_conversation(conversation)
        memories = self._forget_session(change, conversation.identity)
        counts = {"messages": messages, "memories": memories}
        change.record(events.CONVERSATION_DELETED, conversation.realm, **counts)

    def _messages(self, identity: ConversationIdentity) -> tuple[ConversationMessage, ...]:
        with self._tables.lock:
            conversation = self._held(identity)
            rows = [] if conversation is None else list(conversation.messages.values())
        return tuple(row.message for row in rows)

    async def embed(self, conversation: Conversation, rows: Sequence[MessageRow]) -> None:
        """Give rows the embedder's vectors anew, unless they are deleted meanwhile."""
        made = await embedded(self._embedder, [row.message for row in rows])
        with self._tables.lock:
            for row, (_, vector) in zip(rows, made, strict=True):
                row.vector = vector or row.vector
            held = set(map(id, conversation.messages.values()))
            still = [row for row in rows if id(row) in held]
            if self._held(conversation.identity) is conversation:
                self._tables.show_messages(conversation, still)

    def _of_session(self, identity: ConversationIdentity) -> list[MemoryRow]:
        """The memories that are kept for the session alone."""
        realm = conversation_realm(identity)
        return [row for row in self._tables.memories.values() if realm.covers(realm_of(row.memory))]

    def _forget_session(self, change: Records, identity: ConversationIdentity) -> int:
        """Remove what is kept for the session alone; how many memories that were."""
        rows = self._of_session(identity)
        for row in rows:
            for memory in self._tables.remove(row):
                change.record_memory(events.MEMORY_REOPENED, memory)
        for key in list(self._tables.working):
            if (key.tenant, key.user, key.session) == key_of(identity):
                del self._tables.working[key]
        return len(rows)

    def _position(self, cursor: str | None) -> tuple[int, int]:
        """The last arrival that the listing knows, and the activity that its page comes before."""
        if cursor is None:
            snapshot = self._tables.arrival()
            return snapshot, snapshot + 1
        snapshot, before = open_cursor(self._secret, PAGE, cursor)
        return snapshot, before


def _known(conversation: Conversation, snapshot: int) -> list[MessageRow]:
    return [row for row in conversation.messages.values() if row.order <= snapshot]


def _activity(conversation: Conversation, snapshot: int) -> int:
    return max((row.order for row in _known(conversation, snapshot)), default=conversation.order)


def _line(conversation: Conversation, snapshot: int) -> ConversationSummaryRow:
    known = _known(conversation, snapshot)
    return ConversationSummaryRow(
        session_id=conversation.identity.session_id,
        kind=conversation.kind,
        title=conversation.title,
        created_at=conversation.created_at,
        updated_at=known[-1].arrived_at if known else conversation.created_at,
        message_count=len(known),
    )
