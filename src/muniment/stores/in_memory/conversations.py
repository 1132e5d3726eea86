"""Conversations: messages by arrival, sessions, titles and the directory."""

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
    normalize_conversation_title,
)
from muniment.domain.cursor import open_cursor, seal_cursor
from muniment.domain.memory import MemoryType
from muniment.domain.realm import realm_of
from muniment.domain.scope import MemoryScope
from muniment.errors import InvalidEntryError, NotFoundError
from muniment.governance import events
from muniment.governance.events import Records, conversation_realm
from muniment.stores.embedding import RowEmbedder
from muniment.stores.in_memory.tables import Conversation, MemoryRow, MessageRow, Tables
from muniment.stores.recalled import is_searchable, same_message, spoken

_CURSOR = "conversations"
_MOST = 1_000_000
_MOST_ARRIVALS = 1 << 62
MAX_SESSIONS = 10_000  # a tenant: this store is bounded, and nobody else pays for it


class InMemoryConversations:
    """The conversation face: ConversationMessageStore, ConversationSessions, -Directory."""

    def __init__(
        self, tables: Tables, embedder: RowEmbedder, *, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._max_sessions = checks.whole("max_sessions", max_sessions, low=1, high=_MOST)
        self._tables = tables
        self._embedder = embedder
        self._secret = secrets.token_bytes(32)

    async def append_messages(
        self,
        identity: ConversationIdentity,
        messages: Sequence[ConversationMessage],
        *,
        lease: str | None = None,
    ) -> None:
        """All or none of `messages`; a repeated one is ignored, a changed one refused.

        With `lease` only while that holder has the session: NotFoundError where it has not.
        """
        async with self._tables.change() as change:
            if lease is not None and self._tables.leases.get(_key(identity), ("",))[0] != lease:
                raise NotFoundError("no such session")
            rows = self._new_rows(identity, messages)
            if not messages:
                return
            conversation = self._opened(change, identity)
            self._tables.add_messages(conversation, rows)
            if rows:
                counts = {"messages": len(rows)}
                change.record(events.CONVERSATION_APPENDED, conversation.realm, **counts)
        searchable = [row for row in rows if is_searchable(row.message)]
        if searchable and self._embedder.present:
            await self.embed(conversation, searchable)

    async def recent_messages(
        self, identity: ConversationIdentity, *, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """The newest `limit` (from 1) in order of arrival, oldest first."""
        checks.whole("limit", limit, low=1, high=_MOST)
        return self._messages(identity)[-limit:]

    async def recent_complete_messages(
        self, identity: ConversationIdentity, *, limit: int = 3
    ) -> tuple[ConversationMessage, ...]:
        """User message and complete reply of the newest `limit` exchanges, oldest first."""
        checks.whole("limit", limit, low=1, high=_MOST)
        pairs = complete_message_pairs(self._messages(identity), limit=limit)
        return tuple(message for pair in pairs for message in pair)

    async def messages_after(
        self, identity: ConversationIdentity, *, after_message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """The next `limit` after a message, or from the start; ValueError for a foreign one."""
        checks.whole("limit", limit, low=1, high=_MOST)
        messages = self._messages(identity)
        if after_message_id is None:
            return messages[:limit]
        ids = [message.message_id for message in messages]
        if after_message_id not in ids:
            raise ValueError("after_message_id: not a message of this conversation")
        start = ids.index(after_message_id) + 1
        return messages[start : start + limit]

    async def clear_messages(self, identity: ConversationIdentity) -> None:
        """Delete the messages and the summary of them; session and title stay."""
        async with self._tables.change(may_wait=True) as change:
            for row in self._of_session(identity):
                summary = row.memory.memory_type is MemoryType.SUMMARY
                if summary and row.memory.scope is MemoryScope.SESSION:
                    self._tables.delete(change, row)
            conversation = self._held(identity)
            if conversation is not None:
                counts = {"messages": self._tables.clear_messages(conversation)}
                change.record(events.CONVERSATION_CLEARED, conversation.realm, **counts)

    async def create(
        self, identity: ConversationIdentity, *, kind: str = "chat", title: str | None = None
    ) -> None:
        """Make the session; one that exists stays as it is. A title given here is by hand."""
        checks.identifier("kind", kind)
        title = normalize_conversation_title(title)
        async with self._tables.change() as change:
            if self._held(identity) is None:
                conversation = self._opened(change, identity, kind)
                conversation.title, conversation.titled_by_hand = title, title is not None

    async def exists(self, identity: ConversationIdentity, *, kind: str | None = None) -> bool:
        """There is such a session, of this kind where one is named."""
        conversation = self._held(identity)
        return conversation is not None and kind in (None, conversation.kind)

    async def delete(self, identity: ConversationIdentity) -> bool:
        """Delete the session: messages, title, and memories and states kept for it alone."""
        async with self._tables.change(may_wait=True) as change:
            conversation = self._held(identity)
            if conversation is None:
                return False
            self._remove(change, conversation)
            return True

    async def list_conversations(
        self,
        *,
        tenant_id: str,
        user_id: str,
        kind: str | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> ConversationPage:
        """A page, last activity first, as things stood at the first page; ValueError."""
        checks.whole("limit", limit, low=1, high=100)
        mine = (checks.identifier("tenant_id", tenant_id), checks.identifier("user_id", user_id))
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
            seal_cursor(self._secret, _CURSOR, snapshot, page[-1][0]) if more else None,
        )

    async def rename_conversation(
        self, identity: ConversationIdentity, *, title: str | None
    ) -> bool:
        """Set or clear the title by hand; False without such a session."""
        title = normalize_conversation_title(title)
        async with self._tables.change() as change:
            conversation = self._held(identity)
            if conversation is None:
                return False
            conversation.title, conversation.titled_by_hand = title, True
            change.record(events.CONVERSATION_RENAMED, conversation.realm, by_hand=True)
            return True

    async def set_generated_title(self, identity: ConversationIdentity, *, title: str) -> bool:
        """Set the title unless it is blank, or one was set or cleared by hand."""
        generated = normalize_conversation_title(title)
        async with self._tables.change() as change:
            conversation = self._held(identity)
            if conversation is None or conversation.titled_by_hand or generated is None:
                return False
            conversation.title = generated
            change.record(events.CONVERSATION_RENAMED, conversation.realm, by_hand=False)
            return True

    async def get_title(self, identity: ConversationIdentity) -> str | None:
        """The title; None where there is none, or no such session."""
        conversation = self._held(identity)
        return None if conversation is None else conversation.title

    def _held(self, identity: ConversationIdentity) -> Conversation | None:
        return self._tables.conversations.get(_key(identity))

    def _opened(
        self, change: Records, identity: ConversationIdentity, kind: str = "chat"
    ) -> Conversation:
        key = _key(identity)
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

    def _new_rows(
        self, identity: ConversationIdentity, messages: Sequence[ConversationMessage]
    ) -> list[MessageRow]:
        known = {message.message_id: message for message in self._messages(identity)}
        new: list[MessageRow] = []
        now = self._tables.clock()
        for message in messages:
            held = known.setdefault(message.message_id, message)
            if not same_message(held, message):
                raise InvalidEntryError("message_id: names another message already")
            if held is message and all(row.message is not message for row in new):
                new.append(MessageRow(self._tables.arrival(), now, message))
        return new

    async def embed(self, conversation: Conversation, rows: Sequence[MessageRow]) -> None:
        """Give rows the embedder's vectors, where it has any."""
        vectors = await self._embedder.many([_embedded(row) for row in rows])
        self._attach(conversation, rows, vectors)

    def _attach(
        self,
        conversation: Conversation,
        rows: Sequence[MessageRow],
        vectors: Sequence[bytes | None],
    ) -> None:
        """Give rows their vectors, unless they were deleted meanwhile."""
        with self._tables.lock:
            for row, vector in zip(rows, vectors, strict=True):
                row.vector = vector or row.vector
            held = set(map(id, conversation.messages.values()))
            still = [row for row in rows if id(row) in held]
            if self._held(conversation.identity) is conversation:
                self._tables.show_messages(conversation, still)

    def _of_session(self, identity: ConversationIdentity) -> list[MemoryRow]:
        """The memories that are kept for the session alone."""
        realm = conversation_realm(*_key(identity))
        return [row for row in self._tables.memories.values() if realm.covers(realm_of(row.memory))]

    def _forget_session(self, change: Records, identity: ConversationIdentity) -> int:
        """Remove what is kept for the session alone; how many memories that were."""
        rows = self._of_session(identity)
        for row in rows:
            for memory in self._tables.remove(row):
                change.record_memory(events.MEMORY_REOPENED, memory)
        for key in list(self._tables.working):
            if (key.tenant, key.user, key.session) == _key(identity):
                del self._tables.working[key]
        return len(rows)

    def _position(self, cursor: str | None) -> tuple[int, int]:
        """The last arrival that the listing knows, and the activity that its page comes before."""
        if cursor is None:
            snapshot = self._tables.arrival()
            return snapshot, snapshot + 1
        snapshot, before = open_cursor(self._secret, _CURSOR, cursor)
        return snapshot, before


def _key(identity: ConversationIdentity) -> tuple[str, str, str]:
    return identity.tenant_id, identity.user_id, identity.session_id


def _embedded(row: MessageRow) -> str:
    return spoken(row.message.content, row.message.name)


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
