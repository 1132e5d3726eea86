"""Conversations: messages, sessions and directory over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import audience_key, message_audience
from muniment.governance import events
from muniment.stores.postgres.audiences import digest_of
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.core import Core, cursor_secret
from muniment.stores.postgres.erasing import erase
from muniment.stores.postgres.messages import (
    append_messages,
    named,
    open_conversation,
    realm_of_talk,
)
from muniment.stores.postgres.service import require_lease
from muniment.stores.postgres.session import Row, Session
from muniment.stores.recalled import is_searchable, spoken
from muniment.stores.rows import instant_of, memory_of, message_of

_LAST = (1 << 63) - 1
_PAGE = 64
_MOST_MESSAGES = 1_000


class PostgresConversations:
    """The conversation face of a PostgreSQL store."""

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

        async def job(change: Change) -> None:
            if lease is not None:
                await require_lease(change.db, identity, lease)
            admitted = iter(await self._core.admit(change.db, vectors))
            paired = [(m, next(admitted) if is_searchable(m) else None) for m in given]
            await append_messages(change, identity, paired)

        await self._core.change(identity.tenant_id, job)

    async def recent_messages(
        self, identity: ConversationIdentity, *, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """The newest `limit` (1..1000), oldest first."""
        checks.whole("limit", limit, low=1, high=_MOST_MESSAGES)

        async def job(session: Session) -> tuple[ConversationMessage, ...]:
            place = await _place(session, identity)
            return () if place is None else await _newest(session, place, limit)

        return await self._core.read(identity.tenant_id, job)

    async def recent_complete_messages(
        self, identity: ConversationIdentity, *, limit: int = 3
    ) -> tuple[ConversationMessage, ...]:
        """The messages of the newest `limit` (1..1000) completed exchanges, oldest first."""
        checks.whole("limit", limit, low=1, high=_MOST_MESSAGES)

        async def job(session: Session) -> tuple[ConversationMessage, ...]:
            place = await _place(session, identity)
            return () if place is None else await _newest_pairs(session, place, limit)

        return await self._core.read(identity.tenant_id, job)

    async def messages_after(
        self, identity: ConversationIdentity, *, after_message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """Up to `limit` (1..1000) later messages, oldest first; None is from the start."""
        checks.whole("limit", limit, low=1, high=_MOST_MESSAGES)

        async def job(session: Session) -> tuple[ConversationMessage, ...]:
            place = await _place(session, identity)
            after = 0 if after_message_id is None else None
            if place is not None and after_message_id is not None:
                row = await session.one("message_seq", {**place, "message_id": after_message_id})
                after = None if row is None else row[0]
            if after is None:
                raise ValueError("after_message_id: not a message of this conversation")
            if place is None:
                return ()
            values = {**place, "after": after, "limit": limit}
            return tuple(map(message_of, await session.all("messages_from", values)))

        return await self._core.read(identity.tenant_id, job)

    async def clear_messages(self, identity: ConversationIdentity) -> None:
        """Delete the conversation's messages and the summary that covered them."""

        async def job(change: Change) -> None:
            place = await _place(change.db, identity)
            if place is not None:
                await _clear(change, identity, place)

        await self._core.change(identity.tenant_id, job, may_wait=True)

    # -- sessions --------------------------------------------------------------------------

    async def create(
        self, identity: ConversationIdentity, *, kind: str = "chat", title: str | None = None
    ) -> None:
        """Make the conversation known; an existing one stays as it is."""
        kind = checks.identifier("kind", kind, maximum=32)
        title = normalize_conversation_title(title)

        async def job(change: Change) -> None:
            await open_conversation(change, identity, kind, title)

        await self._core.change(identity.tenant_id, job)

    async def exists(self, identity: ConversationIdentity, *, kind: str | None = None) -> bool:
        """Whether the conversation is known, of `kind` where one is named."""
        held = await self._held(identity)
        return held is not None and kind in (None, held[2])

    async def delete(self, identity: ConversationIdentity) -> bool:
        """Delete the conversation with its messages and the memories of its own scopes."""
        realm = realm_of_talk(identity)

        async def job(change: Change) -> bool:
            if await _place(change.db, identity) is None:
                return False
            gone, _ = await erase(change, realm)
            counts = {"messages": gone.result.messages, "memories": gone.result.entries}
            change.record(events.CONVERSATION_DELETED, realm, **counts)
            return True

        return await self._core.change(identity.tenant_id, job, may_wait=True)

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
        tenant = checks.identifier("tenant_id", tenant_id)
        user = checks.identifier("user_id", user_id)
        values = {
            "digest": digest_of(message_audience(tenant, user)),
            "kind": kind,
            "limit": limit + 1,
        }
        return await self._core.read(tenant, lambda session: _page(session, values, cursor))

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
        held = await self._held(identity)
        return None if held is None else held[3]

    async def _held(self, identity: ConversationIdentity) -> Row | None:
        return await self._core.read(
            identity.tenant_id, lambda session: session.one("conversation", named(identity))
        )

    async def _titled(
        self, statement: str, identity: ConversationIdentity, title: str | None
    ) -> bool:
        values = {**named(identity), "title": title}

        async def job(change: Change) -> bool:
            if await change.db.one(statement, values) is None:
                return False
            by_hand = statement == "rename"
            change.record(events.CONVERSATION_RENAMED, realm_of_talk(identity), by_hand=by_hand)
            return True

        return await self._core.change(identity.tenant_id, job)


async def _place(session: Session, identity: ConversationIdentity) -> dict[str, Any] | None:
    row = await session.one("conversation", named(identity))
    return None if row is None else {"audience": row[0], "conversation": row[1]}


async def _newest(
    session: Session, place: dict[str, Any], limit: int
) -> tuple[ConversationMessage, ...]:
    values = {**place, "before": _LAST, "limit": limit}
    return tuple(map(message_of, reversed(await session.all("recent_messages", values))))


async def _newest_pairs(
    session: Session, place: dict[str, Any], limit: int
) -> tuple[ConversationMessage, ...]:
    size = _PAGE
    while True:
        window = await _newest(session, place, size)
        pairs = complete_message_pairs(window, limit=limit)
        # One pair more than asked shows that the oldest one kept was not cut at the edge.
        if len(window) < size or len(complete_message_pairs(window, limit=limit + 1)) > limit:
            return tuple(message for pair in pairs for message in pair)
        size *= 4


async def _clear(change: Change, identity: ConversationIdentity, place: dict[str, Any]) -> None:
    db = change.db
    cleared = [row[0] for row in await db.all("clear_messages", place)]
    audiences = set(cleared)
    owner = MemoryOwner(
        identity.tenant_id, user_id=identity.user_id, session_id=identity.session_id
    )
    key = audience_key(MemoryScope.SESSION, owner) or ""
    for row in await db.all("delete_summary", {"digest": digest_of(key)}):
        audiences.add(row[0])
        change.record_memory(events.MEMORY_DELETED, memory_of(row[1:]))
    await db.run("count_removals", {"audiences": sorted(audiences)})
    change.record(events.CONVERSATION_CLEARED, realm_of_talk(identity), messages=len(cleared))


async def _page(session: Session, values: dict[str, Any], cursor: str | None) -> ConversationPage:
    secret = await cursor_secret(session)
    if cursor is None:
        row = await session.one("arrivals", {"digest": values["digest"]})
        snapshot, activity = (0 if row is None else row[0]), _LAST
    else:
        # The snapshot (the user's last arrival in it), then where the page before ended.
        snapshot, activity = open_cursor(secret, "page", cursor)
    rows = await session.all(
        "list_conversations", {**values, "snapshot": snapshot, "activity": activity}
    )
    limit = values["limit"] - 1
    following = None
    if len(rows) > limit:
        following = seal_cursor(secret, "page", snapshot, rows[limit - 1][6])
    return ConversationPage(tuple(_summary(row) for row in rows[:limit]), following)


def _summary(row: Row) -> ConversationSummaryRow:
    session, kind, title, created, activity, messages = row[:6]
    return ConversationSummaryRow(
        session, kind, title, instant_of(created), instant_of(activity), messages
    )
