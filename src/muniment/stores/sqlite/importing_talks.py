"""Importing sessions and messages: they join those that are there, all of them or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import apsw

from muniment.domain.conversation import ConversationIdentity
from muniment.errors import InvalidEntryError
from muniment.governance import events
from muniment.stores.recalled import is_searchable
from muniment.stores.rows import Row
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.messages import add_messages, open_conversation
from muniment.stores.sqlite.statements import SQL
from muniment.stores.transfer_lines import refused
from muniment.stores.transfer_talks import Talk, read_talk

_AT_ONCE = 500


def publish_talks(change: Change, number: int) -> tuple[int, int]:
    """Open the sessions and append the messages that are new; how many of each."""
    sessions = 0
    added: Counter[ConversationIdentity] = Counter()
    for line, tenant, user, session, text, vector in _staged(change.db, number):
        one = read_talk(line, (tenant, user, session), text)
        if isinstance(one, Talk):
            sessions += open_conversation(change, one.identity, kind=one.kind, title=one.title)
            continue
        kept = vector if is_searchable(one.message) else None
        try:
            added[one.identity] += add_messages(change, one.identity, [(one.message, kept)])
        except InvalidEntryError as error:
            raise refused(line, str(error)) from None
    for identity, count in added.items():
        if count:
            realm = events.conversation_realm(identity)
            change.record(events.CONVERSATION_APPENDED, realm, messages=count)
    return sessions, added.total()


def _staged(db: apsw.Connection, number: int) -> Iterator[Row]:
    after = 0
    while rows := db.execute(SQL["staged_talks"], (number, after, _AT_ONCE)).fetchall():
        yield from rows
        after = int(rows[-1][0])  # type: ignore[arg-type]  # a line's number
