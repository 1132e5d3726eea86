"""Conversations in SQLite: messages, sessions and directory over the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
)
from muniment.domain.cursor import open_cursor
from muniment.governance import events
from muniment.governance.events import conversation_realm
from muniment.stores.conversation_face import Conversations, Given
from muniment.stores.messages import LAST, PAGE, page_of, summary_audience
from muniment.stores.rows import memory_of, message_of
from muniment.stores.sqlite.calls import Job
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core, cursor_secret
from muniment.stores.sqlite.erasing import erase
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.messages import (
    append,
    conversation_row,
    newest,
    newest_pairs,
    opened,
    titled,
)
from muniment.stores.sqlite.service import require_lease
from muniment.stores.sqlite.statements import SQL


class SQLiteConversations(Conversations):
    """The conversation face of a SQLite store."""

    def __init__(self, core: Core) -> None:
        super().__init__(core.embedder)
        self._core = core

    def recent(
        self, identity: ConversationIdentity, limit: int
    ) -> Job[tuple[ConversationMessage, ...]]:
        """`recent_messages` as a job, which another read may include."""
        self._few(limit)

        def job(db: apsw.Connection) -> tuple[ConversationMessage, ...]:
            held = conversation_row(db, identity)
            return () if held is None else newest(db, held[0], LAST, limit)

        return job

    async def _append(
        self, identity: ConversationIdentity, messages: Sequence[Given], lease: str | None
    ) -> None:
        def job(change: Change) -> None:
            if lease is not None:
                require_lease(change.db, identity, lease)
            vectors = self._core.admit(change.db, [vector for _, vector in messages])
            said = [message for message, _ in messages]
            append(change, identity, list(zip(said, vectors, strict=True)))

        await self._core.change(job)

    async def _recent(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        return await self._core.engine.read_async(self.recent(identity, limit))

    async def _recent_pairs(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        def job(db: apsw.Connection) -> tuple[ConversationMessage, ...]:
            held = conversation_row(db, identity)
            return () if held is None else newest_pairs(db, held[0], limit)

        return await self._core.engine.read_async(job)

    async def _after(
        self, identity: ConversationIdentity, message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...] | None:
        def job(db: apsw.Connection) -> tuple[ConversationMessage, ...] | None:
            held = conversation_row(db, identity)
            if held is None:
                return () if message_id is None else None
            after = 0
            if message_id is not None:
                row = db.execute(SQL["message_seq"], (held[0], message_id)).fetchone()
                if row is None:
                    return None
                after = row[0]
            return tuple(map(message_of, db.execute(SQL["messages_from"], (held[0], after, limit))))

        return await self._core.engine.read_async(job)

    async def _clear(self, identity: ConversationIdentity) -> None:
        def job(change: Change) -> None:
            held = conversation_row(change.db, identity)
            if held is not None:
                _clear(change, identity, held[0])

        await self._core.change(job, may_wait=True)

    async def _create(self, identity: ConversationIdentity, kind: str, title: str | None) -> None:
        await self._core.change(lambda change: opened(change, identity, kind, title))

    async def _session(self, identity: ConversationIdentity) -> tuple[str, str | None] | None:
        held = await self._core.engine.read_async(lambda db: conversation_row(db, identity))
        return None if held is None else (held[1], held[2])

    async def _delete(self, identity: ConversationIdentity) -> bool:
        realm = conversation_realm(identity)

        def job(change: Change) -> bool:
            if conversation_row(change.db, identity) is None:
                return False
            gone = erase(change, realm)[0].result
            counts = {"messages": gone.messages, "memories": gone.entries}
            change.record(events.CONVERSATION_DELETED, realm, **counts)
            return True

        return await self._core.change(job, may_wait=True)

    async def _page(
        self, mine: tuple[str, str], kind: str | None, cursor: str | None, limit: int
    ) -> ConversationPage:
        values = {"tenant": mine[0], "user": mine[1], "kind": kind, "limit": limit + 1}

        def job(db: apsw.Connection) -> ConversationPage:
            secret = cursor_secret(db)
            if cursor is None:
                position = (*db.execute(SQL["arrivals"]).get, LAST, LAST)
            else:
                # The snapshot (last message and conversation in it), then where the page before
                # ended.
                position = open_cursor(secret, PAGE, cursor)
            place = zip(("messages", "conversations", "activity", "id"), position, strict=True)
            rows = list(db.execute(SQL["list_conversations"], {**values, **dict(place)}))
            return page_of(rows, limit, secret=secret, snapshot=position[:2])

        return await self._core.engine.read_async(job)

    async def _title(
        self, identity: ConversationIdentity, title: str | None, *, by_hand: bool
    ) -> bool:
        return await self._core.change(
            lambda change: titled(change, identity, title, by_hand=by_hand)
        )


def _clear(change: Change, identity: ConversationIdentity, conversation: int) -> None:
    db = change.db
    cleared = [row[0] for row in db.execute(SQL["clear_messages"], (conversation,))]
    audiences = set(cleared)
    for row in db.execute(SQL["delete_summary"], (summary_audience(identity),)).fetchall():
        audiences.add(row[0])
        change.record_memory(events.MEMORY_DELETED, memory_of(row[1:]))
    db.execute(SQL["count_removals"], (json_list(sorted(audiences)),))
    change.record(events.CONVERSATION_CLEARED, conversation_realm(identity), messages=len(cleared))
