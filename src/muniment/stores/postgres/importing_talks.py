"""Importing sessions and messages: they join those that are there, all of them or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from itertools import groupby

from muniment.domain.conversation import ConversationIdentity
from muniment.errors import InvalidEntryError
from muniment.governance import events
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.messages import add_messages, open_conversation
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.vectors import Halfvec
from muniment.stores.recalled import is_searchable
from muniment.stores.transfer_lines import refused
from muniment.stores.transfer_talks import Said, Talk, read_talk

_AT_ONCE = 500
_Staged = tuple[Talk | Said, Halfvec | None]
_Spoken = tuple[Said, Halfvec | None]


async def publish_talks(change: Change, number: int) -> tuple[int, int]:
    """Open the sessions and append the messages that are new; how many of each."""
    sessions = 0
    added: Counter[ConversationIdentity] = Counter()
    async for page in _pages(change.db, number):
        for _, group in groupby(page, key=_kind_and_place):
            staged = list(group)
            for one, _ in staged:
                if isinstance(one, Talk):
                    sessions += await open_conversation(change, one.identity, one.kind, one.title)
            said = [(one, vector) for one, vector in staged if isinstance(one, Said)]
            if said:
                added[said[0][0].identity] += await _added(change, said)
    for identity, count in added.items():
        if count:
            realm = events.conversation_realm(identity)
            change.record(events.CONVERSATION_APPENDED, realm, messages=count)
    return sessions, added.total()


def _kind_and_place(staged: _Staged) -> tuple[bool, ConversationIdentity]:
    return isinstance(staged[0], Talk), staged[0].identity


async def _added(change: Change, said: Sequence[_Spoken]) -> int:
    identity = said[0][0].identity
    messages = [
        (one.message, vector if is_searchable(one.message) else None) for one, vector in said
    ]
    try:
        return await add_messages(change, identity, messages)
    except InvalidEntryError as error:
        if len(said) == 1:
            raise refused(said[0][0].line, str(error)) from None
    return sum([await _added(change, [one]) for one in said])  # one by one: which line is it?


async def _pages(db: Session, number: int) -> AsyncIterator[list[_Staged]]:
    place = {"import": number, "line": 0, "limit": _AT_ONCE}
    while rows := await db.all("staged_talks", place):
        yield [_read(db.tenant, *row) for row in rows]
        place["line"] = rows[-1][0]


def _read(
    tenant: str, line: int, user: str, session: str, text: str, wire: bytes | None
) -> _Staged:
    one = read_talk(line, (tenant, user, session), text)
    return one, None if wire is None else Halfvec(wire)
