"""Importing sessions and messages: they join those that are there, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import apsw

from muniment.domain.conversation import ConversationIdentity
from muniment.errors import InvalidEntryError
from muniment.governance import events
from muniment.governance.events import conversation_realm
from muniment.stores.recalled import is_searchable, spoken
from muniment.stores.rows import Row
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.messages import add_messages, open_conversation
from muniment.stores.sqlite.statements import SQL
from muniment.stores.transfer_lines import refused
from muniment.stores.transfer_talks import (
    MESSAGE,
    SESSION,
    Said,
    Talk,
    exported_message,
    read_message,
)

_AT_ONCE = 500


def talk_row(one: Talk | Said, fixed: dict[str, Any]) -> dict[str, Any]:
    """A session or a message as it is staged; `content` is what is embedded of it."""
    identity, text = one.identity, ""
    if isinstance(one, Talk):
        record: dict[str, Any] = {SESSION: {"kind": one.kind, "title": one.title}}
    else:
        record = exported_message(one.message)
        if is_searchable(one.message):
            text = spoken(one.message.content, one.message.name)
    return {
        **fixed,
        "line": one.line,
        "tenant": identity.tenant_id,
        "user": identity.user_id,
        "session": identity.session_id,
        "record": json.dumps(record, ensure_ascii=False),
        "content": text,
    }


def publish_talks(change: Change, number: int) -> tuple[int, int]:
    """Open the sessions and append the messages that are new; how many of each."""
    sessions = 0
    added: dict[tuple[str, str, str], int] = {}
    for line, *place, text, vector in _staged(change.db, number):
        tenant, user, session = place
        identity = ConversationIdentity(tenant, user, session, user)
        record = json.loads(text)
        if SESSION in record:
            sessions += open_conversation(change, identity, **record[SESSION])
            continue
        said = read_message(line, record[MESSAGE], Talk(line, identity, "", None))
        kept = vector if is_searchable(said.message) else None
        try:
            new = add_messages(change, identity, [(said.message, kept)])
        except InvalidEntryError as error:
            raise refused(line, str(error)) from None
        added[tenant, user, session] = added.get((tenant, user, session), 0) + new
    for key, count in added.items():
        if count:
            change.record(events.CONVERSATION_APPENDED, conversation_realm(*key), messages=count)
    return sessions, sum(added.values())


def _staged(db: apsw.Connection, number: int) -> Iterator[Row]:
    after = 0
    while rows := db.execute(SQL["staged_talks"], (number, after, _AT_ONCE)).fetchall():
        yield from rows
        after = int(rows[-1][0])  # type: ignore[arg-type]  # a line's number
