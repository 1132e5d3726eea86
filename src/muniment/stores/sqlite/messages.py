"""A conversation's row and its messages, inside whatever job reads or writes them."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
)
from muniment.domain.visibility import message_audience
from muniment.governance import events
from muniment.governance.events import conversation_realm
from muniment.stores.messages import LAST, fresh, indexed, whole_pairs
from muniment.stores.rows import Row, message_of, message_row, micros
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.writes import touch

_BESIDE = 4  # messages: one pair more, and a question or two without an answer


def conversation_row(db: apsw.Connection, identity: ConversationIdentity) -> Row | None:
    """Its number, kind and title; None where there is none."""
    values = (identity.tenant_id, identity.user_id, identity.session_id)
    row: Row | None = db.execute(SQL["conversation"], values).fetchone()
    return row


def opened(
    change: Change,
    identity: ConversationIdentity,
    kind: str = "chat",
    title: str | None = None,
) -> int:
    """The conversation's number; it is made where there is none."""
    held = conversation_row(change.db, identity)
    if held is not None:
        return int(held[0])
    values = {
        "tenant": identity.tenant_id,
        "user": identity.user_id,
        "session": identity.session_id,
        "kind": kind,
        "title": title,
        "by_hand": int(title is not None),
        "now": micros(change.now),
    }
    change.db.execute(SQL["open_conversation"], values)
    made = change.db.last_insert_rowid()
    change.record(events.CONVERSATION_CREATED, conversation_realm(identity), kind=kind)
    return made


def open_conversation(
    change: Change, identity: ConversationIdentity, *, kind: str, title: str | None
) -> bool:
    """Make the conversation where there is none; whether there was none."""
    if conversation_row(change.db, identity) is not None:
        return False
    opened(change, identity, kind, title)
    return True


def append(
    change: Change,
    identity: ConversationIdentity,
    messages: Sequence[tuple[ConversationMessage, bytes | None]],
    *,
    kind: str = "chat",
) -> None:
    """Append, and record how many were new; see `add_messages`."""
    count = add_messages(change, identity, messages, kind=kind)
    if count:
        change.record(events.CONVERSATION_APPENDED, conversation_realm(identity), messages=count)


def add_messages(
    change: Change,
    identity: ConversationIdentity,
    messages: Sequence[tuple[ConversationMessage, bytes | None]],
    *,
    kind: str = "chat",
) -> int:
    """Append what is new of these; how many. InvalidEntryError for an id that is in use.

    `kind` is that of a conversation that is made by it.
    """
    db, now = change.db, micros(change.now)
    conversation = opened(change, identity, kind)
    ids = json_list([message.message_id for message, _ in messages])
    rows = db.execute(SQL["held_messages"], (conversation, ids))
    new = fresh(map(message_of, rows), messages)
    if not new:
        return 0
    audience, changed = touch(db, message_audience(identity.tenant_id, identity.user_id))
    for message, vector in new:
        head = (conversation, audience, changed, now, *indexed(message), vector)
        db.execute(SQL["append_message"], (*head, *message_row(message)))
    return len(new)


def newest(
    db: apsw.Connection, conversation: int, before: int, limit: int
) -> tuple[ConversationMessage, ...]:
    """The newest `limit` messages before a place, oldest first."""
    rows = list(db.execute(SQL["recent_messages"], (conversation, before, limit)))
    return tuple(map(message_of, reversed(rows)))


def newest_pairs(
    db: apsw.Connection, conversation: int, limit: int
) -> tuple[ConversationMessage, ...]:
    """The messages of the newest `limit` completed exchanges, oldest first."""
    size, found = 2 * limit + _BESIDE, None
    while found is None:
        window = newest(db, conversation, LAST, size)
        found = whole_pairs(window, limit, cut=len(window) == size)
        size *= 4
    return found


def titled(
    change: Change, identity: ConversationIdentity, title: str | None, *, by_hand: bool
) -> bool:
    """Set the title, never over one by hand unless `by_hand`; whether it was set."""
    statement = "rename" if by_hand else "set_generated_title"
    values = (identity.tenant_id, identity.user_id, identity.session_id, title)
    if change.db.execute(SQL[statement], values).fetchone() is None:
        return False
    change.record(events.CONVERSATION_RENAMED, conversation_realm(identity), by_hand=by_hand)
    return True
