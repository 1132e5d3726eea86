"""Sessions and messages of an export and an import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.realm import RealmKey
from muniment.governance import events
from muniment.governance.events import Records
from muniment.stores.in_memory.tables import (
    Conversation,
    ConversationKey,
    MessageRow,
    Tables,
    key_of,
)
from muniment.stores.recalled import is_searchable, same_message, spoken
from muniment.stores.transfer_lines import refused
from muniment.stores.transfer_talks import Said, Talk, exported_message, exported_session


def exported_talks(tables: Tables, realm: RealmKey) -> list[dict[str, Any]]:
    """The realm's sessions in the order of their making, each followed by its messages."""
    lines: list[dict[str, Any]] = []
    for talk in sorted(tables.conversations.values(), key=lambda each: each.order):
        if realm.agent is None and realm.covers(talk.realm):
            names = key_of(talk.identity)
            lines.append(exported_session(*names, kind=talk.kind, title=talk.title))
            lines += [exported_message(row.message) for row in talk.messages.values()]
    return lines


def embedded(one: Talk | Said) -> str:
    """What is embedded of a line."""
    if isinstance(one, Talk) or not is_searchable(one.message):
        return ""
    return spoken(one.message.content, one.message.name)


def check_talks(tables: Tables, talks: Sequence[Talk | Said]) -> None:
    """InvalidEntryError for an id that is in use for another message of its conversation."""
    known: dict[ConversationKey, dict[str, ConversationMessage]] = {}
    for one in talks:
        held = known.setdefault(key_of(one.identity), _messages(tables, one.identity))
        if isinstance(one, Said):
            before = held.setdefault(one.message.message_id, one.message)
            if not same_message(before, one.message):
                raise refused(
                    one.line, "message_id: is in use for another message of the conversation"
                )


def publish_talks(
    tables: Tables, change: Records, talks: Sequence[Talk | Said], vectors: Sequence[bytes | None]
) -> tuple[int, int]:
    """Open the sessions and append the messages that are new; how many of each."""
    before = len(tables.conversations)
    count = 0
    for one, vector in zip(talks, vectors, strict=True):
        talk = _opened(tables, change, one)
        if isinstance(one, Said) and one.message.message_id not in talk.messages:
            kept = vector if is_searchable(one.message) else None
            tables.add_messages(talk, [MessageRow(tables.arrival(), change.now, one.message, kept)])
            change.record(events.CONVERSATION_APPENDED, talk.realm, messages=1)
            count += 1
    return len(tables.conversations) - before, count


def _opened(tables: Tables, change: Records, one: Talk | Said) -> Conversation:
    key = key_of(one.identity)
    held = tables.conversations.get(key)
    if held is None:
        kind, title = (one.kind, one.title) if isinstance(one, Talk) else ("chat", None)
        held = Conversation(one.identity, kind, tables.arrival(), change.now)
        held.title, held.titled_by_hand = title, title is not None
        tables.conversations[key] = held
        change.record(events.CONVERSATION_CREATED, held.realm, kind=kind)
    return held


def _messages(tables: Tables, identity: ConversationIdentity) -> dict[str, ConversationMessage]:
    held = tables.conversations.get(key_of(identity))
    rows = {} if held is None else held.messages
    return {name: row.message for name, row in rows.items()}
