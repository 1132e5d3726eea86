"""Messages on their way into a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.visibility import message_audience
from muniment.governance import events
from muniment.stores.messages import fresh, indexed
from muniment.stores.postgres.audiences import digest_of, touch
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.statements import MESSAGE_COLUMNS
from muniment.stores.postgres.vectors import Halfvec
from muniment.stores.rows import message_of, message_row, micros

Given = tuple[ConversationMessage, Halfvec | None]
_COLUMNS = MESSAGE_COLUMNS.split(", ")


def named(identity: ConversationIdentity) -> dict[str, Any]:
    """A conversation as parameters."""
    key = message_audience(identity.tenant_id, identity.user_id)
    return {"digest": digest_of(key), "session": identity.session_id}


async def open_conversation(
    change: Change, identity: ConversationIdentity, kind: str, title: str | None
) -> bool:
    """Make the conversation known where it is not; whether it was not."""
    audience, number = await _locked(change, identity)
    return number == await _opened(change, identity, audience, number, kind, title)


async def append_messages(
    change: Change, identity: ConversationIdentity, messages: Sequence[Given]
) -> None:
    """Append, and record how many were new; see `add_messages`."""
    count = await add_messages(change, identity, messages)
    if count:
        realm = events.conversation_realm(identity)
        change.record(events.CONVERSATION_APPENDED, realm, messages=count)


async def add_messages(
    change: Change, identity: ConversationIdentity, messages: Sequence[Given]
) -> int:
    """Append those that are not there yet; how many. InvalidEntryError for an id used otherwise."""
    audience, version = await _locked(change, identity, len(messages))
    first = version - len(messages)  # the conversation's, should it be new; then the messages'
    conversation = await _opened(change, identity, audience, first)
    place = {"audience": audience, "conversation": conversation}
    ids = [message.message_id for message, _ in messages]
    held = await change.db.all("held_messages", {**place, "ids": ids})
    new = fresh(map(message_of, held), messages)
    if new:
        head = {**place, "changed": version, "now": micros(change.now)}
        rows = [_row(head, first + count, *given) for count, given in enumerate(new, 1)]
        await change.db.run_many("append_message", rows)
    return len(new)


async def _locked(
    change: Change, identity: ConversationIdentity, messages: int = 0
) -> tuple[int, int]:
    """The user's audience and its version, with numbers for a conversation and messages.

    It stays locked: what several senders do at once is done one after the other.
    """
    key = message_audience(identity.tenant_id, identity.user_id)
    return await touch(change.db, key, 1 + messages)


async def _opened(
    change: Change,
    identity: ConversationIdentity,
    audience: int,
    number: int,
    kind: str = "chat",
    title: str | None = None,
) -> int:
    """The conversation's number; it is made, with the number given, where there is none."""
    held = await change.db.one("conversation", named(identity))
    if held is not None:
        return int(held[1])
    values = {
        **named(identity),
        "audience": audience,
        "id": number,
        "user": identity.user_id,
        "kind": kind,
        "title": title,
        "by_hand": title is not None,
        "now": micros(change.now),
    }
    await change.db.run("open_conversation", values)
    change.record(events.CONVERSATION_CREATED, events.conversation_realm(identity), kind=kind)
    return number


def _row(
    head: dict[str, Any], seq: int, message: ConversationMessage, vector: Halfvec | None
) -> dict[str, Any]:
    terms, marks, length = indexed(message)
    return {
        **dict(zip(_COLUMNS, message_row(message), strict=True)),
        **head,
        "seq": seq,
        "terms": terms,
        "marks": marks,
        "length": length,
        "vector": vector,
    }
