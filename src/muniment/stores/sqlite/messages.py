"""A conversation's row and its messages, inside whatever job reads or writes them."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    complete_message_pairs,
)
from muniment.domain.realm import RealmKey
from muniment.domain.visibility import message_audience
from muniment.errors import InvalidEntryError
from muniment.governance import events
from muniment.governance.events import conversation_realm
from muniment.lexical.indexing import index_text
from muniment.stores.recalled import is_searchable, same_message
from muniment.stores.rows import Row, message_of, message_row, micros
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.writes import touch

LAST = (1 << 63) - 1
_BESIDE = 4  # messages: one pair more, and a question or two without an answer


def realm_of_talk(identity: ConversationIdentity) -> RealmKey:
    """What a conversation's records belong to."""
    return conversation_realm(identity.tenant_id, identity.user_id, identity.session_id)


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
    change.record(events.CONVERSATION_CREATED, realm_of_talk(identity), kind=kind)
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
        change.record(events.CONVERSATION_APPENDED, realm_of_talk(identity), messages=count)


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
    held = {message.message_id: message for message in map(message_of, rows)}
    fresh: list[tuple[ConversationMessage, bytes | None]] = []
    for message, vector in messages:
        before = held.setdefault(message.message_id, message)
        if not same_message(before, message):
            raise InvalidEntryError("message_id: is in use for another message of the conversation")
        if before is message:
            fresh.append((message, vector))
    if not fresh:
        return 0
    audience, changed = touch(db, message_audience(identity.tenant_id, identity.user_id))
    for message, vector in fresh:
        text = index_text(message.content, name=message.name) if is_searchable(message) else None
        index = (None, None, None) if text is None else (text.terms, text.marks, text.length)
        head = (conversation, audience, changed, now, *index, vector)
        db.execute(SQL["append_message"], (*head, *message_row(message)))
    return len(fresh)


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
    size = 2 * limit + _BESIDE
    while True:
        window = newest(db, conversation, LAST, size)
        pairs = complete_message_pairs(window, limit=limit)
        # One pair more than asked shows that the oldest one kept was not cut at the edge.
        if len(window) < size or len(complete_message_pairs(window, limit=limit + 1)) > limit:
            return tuple(message for pair in pairs for message in pair)
        size *= 4


def titled(
    change: Change, statement: str, identity: ConversationIdentity, title: str | None
) -> bool:
    """Set the title by `rename` or `set_generated_title`; whether it was set."""
    values = (identity.tenant_id, identity.user_id, identity.session_id, title)
    if change.db.execute(SQL[statement], values).fetchone() is None:
        return False
    by_hand = statement == "rename"
    change.record(events.CONVERSATION_RENAMED, realm_of_talk(identity), by_hand=by_hand)
    return True
