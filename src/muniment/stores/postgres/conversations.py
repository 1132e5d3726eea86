"""Conversations in PostgreSQL: messages, sessions and directory over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
)
from muniment.domain.cursor import open_cursor
from muniment.domain.visibility import message_audience
from muniment.governance import events
from muniment.governance.events import conversation_realm
from muniment.stores.conversation_face import Conversations, Given
from muniment.stores.messages import LAST, PAGE, page_of, summary_audience, whole_pairs
from muniment.stores.postgres.audiences import digest_of
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.core import Core, cursor_secret
from muniment.stores.postgres.erasing import erase
from muniment.stores.postgres.messages import append_messages, named, open_conversation
from muniment.stores.postgres.service import require_lease
from muniment.stores.postgres.session import Session
from muniment.stores.rows import memory_of, message_of

_WINDOW = 64


class PostgresConversations(Conversations):
    """The conversation face of a PostgreSQL store."""

    def __init__(self, core: Core) -> None:
        super().__init__(core.embedder)
        self._core = core

    async def _append(
        self, identity: ConversationIdentity, messages: Sequence[Given], lease: str | None
    ) -> None:
        async def job(change: Change) -> None:
            if lease is not None:
                await require_lease(change.db, identity, lease)
            vectors = await self._core.admit(change.db, [vector for _, vector in messages])
            said = [message for message, _ in messages]
            await append_messages(change, identity, list(zip(said, vectors, strict=True)))

        await self._core.change(identity.tenant_id, job)

    async def _recent(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        async def job(session: Session) -> tuple[ConversationMessage, ...]:
            place = await _place(session, identity)
            return () if place is None else await _newest(session, place, limit)

        return await self._core.read(identity.tenant_id, job)

    async def _recent_pairs(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        async def job(session: Session) -> tuple[ConversationMessage, ...]:
            place = await _place(session, identity)
            return () if place is None else await _newest_pairs(session, place, limit)

        return await self._core.read(identity.tenant_id, job)

    async def _after(
        self, identity: ConversationIdentity, message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...] | None:
        async def job(session: Session) -> tuple[ConversationMessage, ...] | None:
            place = await _place(session, identity)
            if place is None:
                return () if message_id is None else None
            after = 0
            if message_id is not None:
                row = await session.one("message_seq", {**place, "message_id": message_id})
                if row is None:
                    return None
                after = row[0]
            values = {**place, "after": after, "limit": limit}
            return tuple(map(message_of, await session.all("messages_from", values)))

        return await self._core.read(identity.tenant_id, job)

    async def _clear(self, identity: ConversationIdentity) -> None:
        async def job(change: Change) -> None:
            place = await _place(change.db, identity)
            if place is not None:
                await _clear(change, identity, place)

        await self._core.change(identity.tenant_id, job, may_wait=True)

    async def _create(self, identity: ConversationIdentity, kind: str, title: str | None) -> None:
        async def job(change: Change) -> None:
            await open_conversation(change, identity, kind, title)

        await self._core.change(identity.tenant_id, job)

    async def _session(self, identity: ConversationIdentity) -> tuple[str, str | None] | None:
        values = named(identity)
        held = await self._core.read(
            identity.tenant_id, lambda session: session.one("conversation", values)
        )
        return None if held is None else (held[2], held[3])

    async def _delete(self, identity: ConversationIdentity) -> bool:
        realm = conversation_realm(identity)

        async def job(change: Change) -> bool:
            if await _place(change.db, identity) is None:
                return False
            gone = (await erase(change, realm))[0].result
            counts = {"messages": gone.messages, "memories": gone.entries}
            change.record(events.CONVERSATION_DELETED, realm, **counts)
            return True

        return await self._core.change(identity.tenant_id, job, may_wait=True)

    async def _page(
        self, mine: tuple[str, str], kind: str | None, cursor: str | None, limit: int
    ) -> ConversationPage:
        digest = digest_of(message_audience(*mine))
        values = {"digest": digest, "kind": kind, "limit": limit + 1}

        async def job(session: Session) -> ConversationPage:
            secret = await cursor_secret(session)
            if cursor is None:
                row = await session.one("arrivals", {"digest": digest})
                snapshot, activity = (0 if row is None else row[0]), LAST
            else:
                # The snapshot (the user's last arrival in it), then where the page before ended.
                snapshot, activity = open_cursor(secret, PAGE, cursor)
            place = {"snapshot": snapshot, "activity": activity}
            rows = await session.all("list_conversations", {**values, **place})
            return page_of(rows, limit, secret=secret, snapshot=(snapshot,))

        return await self._core.read(mine[0], job)

    async def _title(
        self, identity: ConversationIdentity, title: str | None, *, by_hand: bool
    ) -> bool:
        statement = "rename" if by_hand else "set_generated_title"
        values = {**named(identity), "title": title}

        async def job(change: Change) -> bool:
            if await change.db.one(statement, values) is None:
                return False
            realm = conversation_realm(identity)
            change.record(events.CONVERSATION_RENAMED, realm, by_hand=by_hand)
            return True

        return await self._core.change(identity.tenant_id, job)


async def _place(session: Session, identity: ConversationIdentity) -> dict[str, Any] | None:
    row = await session.one("conversation", named(identity))
    return None if row is None else {"audience": row[0], "conversation": row[1]}


async def _newest(
    session: Session, place: dict[str, Any], limit: int
) -> tuple[ConversationMessage, ...]:
    values = {**place, "before": LAST, "limit": limit}
    return tuple(map(message_of, reversed(await session.all("recent_messages", values))))


async def _newest_pairs(
    session: Session, place: dict[str, Any], limit: int
) -> tuple[ConversationMessage, ...]:
    size, found = _WINDOW, None
    while found is None:
        window = await _newest(session, place, size)
        found = whole_pairs(window, limit, cut=len(window) == size)
        size *= 4
    return found


async def _clear(change: Change, identity: ConversationIdentity, place: dict[str, Any]) -> None:
    db = change.db
    cleared = [row[0] for row in await db.all("clear_messages", place)]
    audiences = set(cleared)
    summary = {"digest": digest_of(summary_audience(identity))}
    for row in await db.all("delete_summary", summary):
        audiences.add(row[0])
        change.record_memory(events.MEMORY_DELETED, memory_of(row[1:]))
    await db.run("count_removals", {"audiences": sorted(audiences)})
    change.record(events.CONVERSATION_CLEARED, conversation_realm(identity), messages=len(cleared))
