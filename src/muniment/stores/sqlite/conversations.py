"""Conversations: messages, sessions and directory over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from muniment.domain import checks
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
    ConversationSummaryRow,
    normalize_conversation_title,
)
from muniment.domain.cursor import open_cursor, seal_cursor
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import audience_key
from muniment.governance import events
from muniment.stores.recalled import is_searchable, spoken
from muniment.stores.rows import Row, instant_of, memory_of, message_of
from muniment.stores.sqlite.calls import Job
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core, cursor_secret
from muniment.stores.sqlite.erasing import erase
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.messages import (
    LAST,
    append,
    conversation_row,
    newest,
    newest_pairs,
    opened,
    realm_of_talk,
    titled,
)
from muniment.stores.sqlite.service import require_lease
from muniment.stores.sqlite.statements import SQL

_MOST_MESSAGES = 1_000


class SQLiteConversations:
    """The conversation face of a SQLite store."""

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- messages --------------------------------------------------------------------------

    async def append_messages(
        self,
        identity: ConversationIdentity,
        messages: Sequence[ConversationMessage],
        *,
        lease: str | None = None,
    ) -> None:
        """Append in order, all or none; a message already there is ignored.

        With `lease` only while that holder has the session. InvalidEntryError where an id is in
        use for other content, NotFoundError where the lease is over.
        """
        given = list(messages)
        if not given:
            return
        texts = [spoken(m.content, m.name) for m in given if is_searchable(m)]
        vectors = await self._core.embedder.many(texts)

        def job(change: Change) -> None:
            if lease is not None:
                require_lease(change.db, identity, lease)
            admitted = iter(self._core.admit(change.db, vectors))
            paired = [(m, next(admitted) if is_searchable(m) else None) for m in given]
            append(change, identity, paired)

        await self._core.change(job)

    async def recent_messages(
        self, identity: ConversationIdentity, *, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """The newest `limit` (1..1000), oldest first."""
        return await self._core.engine.read_async(self.recent(identity, limit))

    def recent(
        self, identity: ConversationIdentity, limit: int
    ) -> Job[tuple[ConversationMessage, ...]]:
        """`recent_messages` as a job, which another read may include."""
        checks.whole("limit", limit, low=1, high=_MOST_MESSAGES)

        def job(db: apsw.Connection) -> tuple[ConversationMessage, ...]:
            held = conversation_row(db, identity)
            return () if held is None else newest(db, held[0], LAST, limit)

        return job

    async def recent_complete_messages(
        self, identity: ConversationIdentity, *, limit: int = 3
    ) -> tuple[ConversationMessage, ...]:
        """The messages of the newest `limit` (1..1000) completed exchanges, oldest first."""
        checks.whole("limit", limit, low=1, high=_MOST_MESSAGES)

        def job(db: apsw.Connection) -> tuple[ConversationMessage, ...]:
            held = conversation_row(db, identity)
            return () if held is None else newest_pairs(db, held[0], limit)

        return await self._core.engine.read_async(job)

    async def messages_after(
        self, identity: ConversationIdentity, *, after_message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """Up to `limit` (1..1000) later messages, oldest first; None is from the start."""
        checks.whole("limit", limit, low=1, high=_MOST_MESSAGES)

        def job(db: apsw.Connection) -> tuple[ConversationMessage, ...]:
            held = conversation_row(db, identity)
            after = 0
            if after_message_id is not None:
                place = held and db.execute(SQL["message_seq"], (held[0], after_message_id))
                row = place.fetchone() if place else None
                if row is None:
                    raise ValueError("after_message_id: not a message of this conversation")
                after = row[0]
            if held is None:
                return ()
            return tuple(map(message_of, db.execute(SQL["messages_from"], (held[0], after, limit))))

        return await self._core.engine.read_async(job)

    async def clear_messages(self, identity: ConversationIdentity) -> None:
        """Delete the conversation's messages and the summary that covered them."""

        def job(change: Change) -> None:
            held = conversation_row(change.db, identity)
            if held is not None:
                _clear(change, identity, held[0])

        await self._core.change(job, may_wait=True)

    # -- sessions --------------------------------------------------------------------------

    async def create(
        self, identity: ConversationIdentity, *, kind: str = "chat", title: str | None = None
    ) -> None:
        """Make the conversation known; an existing one stays as it is."""
        kind = checks.identifier("kind", kind, maximum=32)
        title = normalize_conversation_title(title)
        await self._core.change(lambda change: opened(change, identity, kind, title))

    async def exists(self, identity: ConversationIdentity, *, kind: str | None = None) -> bool:
        """Whether the conversation is known, of `kind` where one is named."""
        held = await self._core.engine.read_async(lambda db: conversation_row(db, identity))
        return held is not None and kind in (None, held[1])

    async def delete(self, identity: ConversationIdentity) -> bool:
        """Delete the conversation with its messages and the memories of its own scopes."""
        realm = realm_of_talk(identity)

        def job(change: Change) -> bool:
            if conversation_row(change.db, identity) is None:
                return False
            gone = erase(change, realm)[0].result
            counts = {"messages": gone.messages, "memories": gone.entries}
            change.record(events.CONVERSATION_DELETED, realm, **counts)
            return True

        return await self._core.change(job, may_wait=True)

    # -- directory -------------------------------------------------------------------------

    async def list_conversations(
        self,
        *,
        tenant_id: str,
        user_id: str,
        kind: str | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> ConversationPage:
        """Newest activity first, as of the first page; `limit` is 1..100."""
        checks.whole("limit", limit, low=1, high=100)
        values = {
            "tenant": checks.identifier("tenant_id", tenant_id),
            "user": checks.identifier("user_id", user_id),
            "kind": kind,
            "limit": limit + 1,
        }
        return await self._core.engine.read_async(lambda db: _page(db, values, cursor))

    async def rename_conversation(
        self, identity: ConversationIdentity, *, title: str | None
    ) -> bool:
        """Set or clear the title by hand; False where there is no such conversation."""
        return await self._titled("rename", identity, normalize_conversation_title(title))

    async def set_generated_title(self, identity: ConversationIdentity, *, title: str) -> bool:
        """Set the title unless it is blank, or one was set or cleared by hand."""
        generated = normalize_conversation_title(title)
        return generated is not None and await self._titled(
            "set_generated_title", identity, generated
        )

    async def get_title(self, identity: ConversationIdentity) -> str | None:
        """The title, None without one."""
        held = await self._core.engine.read_async(lambda db: conversation_row(db, identity))
        return None if held is None else held[2]

    async def _titled(
        self, statement: str, identity: ConversationIdentity, title: str | None
    ) -> bool:
        return await self._core.change(lambda change: titled(change, statement, identity, title))


def _clear(change: Change, identity: ConversationIdentity, conversation: int) -> None:
    db = change.db
    cleared = [row[0] for row in db.execute(SQL["clear_messages"], (conversation,))]
    audiences = set(cleared)
    owner = MemoryOwner(
        identity.tenant_id, user_id=identity.user_id, session_id=identity.session_id
    )
    key = audience_key(MemoryScope.SESSION, owner)
    for row in db.execute(SQL["delete_summary"], (key,)).fetchall():
        audiences.add(row[0])
        change.record_memory(events.MEMORY_DELETED, memory_of(row[1:]))
    db.execute(SQL["count_removals"], (json_list(sorted(audiences)),))
    change.record(events.CONVERSATION_CLEARED, realm_of_talk(identity), messages=len(cleared))


def _page(db: apsw.Connection, values: dict[str, Any], cursor: str | None) -> ConversationPage:
    if cursor is None:
        messages, conversations = db.execute(SQL["arrivals"]).get
        position = (messages, conversations, LAST, LAST)
    else:
        # The snapshot (last message and conversation in it), then where the page before ended.
        position = open_cursor(cursor_secret(db), "page", cursor)
    names = ("messages", "conversations", "activity", "id")
    rows = list(db.execute(SQL["list_conversations"], {**values, **_named(names, position)}))
    limit = values["limit"] - 1
    following = None
    if len(rows) > limit:
        place = (*position[:2], *rows[limit - 1][6:])
        following = seal_cursor(cursor_secret(db), "page", *place)
    return ConversationPage(tuple(_summary(row) for row in rows[:limit]), following)


def _named(names: Sequence[str], values: Sequence[int]) -> dict[str, int]:
    return dict(zip(names, values, strict=True))


def _summary(row: Row) -> ConversationSummaryRow:
    session, kind, title, created, activity, messages = row[:6]
    return ConversationSummaryRow(
        session, kind, title, instant_of(created), instant_of(activity), messages
    )
