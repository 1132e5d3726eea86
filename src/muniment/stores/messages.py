"""What every store does with messages, before and after its own statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
    ConversationSummaryRow,
    complete_message_pairs,
)
from muniment.domain.cursor import seal_cursor
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import audience_key
from muniment.errors import InvalidEntryError
from muniment.lexical.indexing import IndexedText, index_text
from muniment.stores.embedding import RowEmbedder
from muniment.stores.recalled import is_searchable, same_message, spoken
from muniment.stores.rows import Row, instant_of

Vector = TypeVar("Vector")

LAST = (1 << 63) - 1
"""A place after every row."""

PAGE = "page"
"""What the cursors of a listing are sealed for."""

_NOT_INDEXED = (None, None, None)


async def embedded(
    embedder: RowEmbedder, messages: Sequence[ConversationMessage]
) -> list[tuple[ConversationMessage, bytes | None]]:
    """Each message with its vector; one that is not searchable has none."""
    texts = [spoken(m.content, m.name) for m in messages if is_searchable(m)]
    vectors = iter(await embedder.many(texts))
    return [(m, next(vectors) if is_searchable(m) else None) for m in messages]


def fresh(
    held: Iterable[ConversationMessage], given: Iterable[tuple[ConversationMessage, Vector]]
) -> list[tuple[ConversationMessage, Vector]]:
    """What is new of the messages given, each once; `held` are those of their ids that are there.

    InvalidEntryError for an id that is in use for another message.
    """
    known = {message.message_id: message for message in held}
    new: list[tuple[ConversationMessage, Vector]] = []
    for message, vector in given:
        before = known.get(message.message_id)
        if before is None:
            known[message.message_id] = message
            new.append((message, vector))
        elif not same_message(before, message):
            raise InvalidEntryError("message_id: is in use for another message of the conversation")
    return new


def indexed(message: ConversationMessage) -> IndexedText | tuple[None, None, None]:
    """Terms, marks and length of a message, all None for one that is never recalled."""
    if not is_searchable(message):
        return _NOT_INDEXED
    return index_text(message.content, name=message.name)


def whole_pairs(
    window: Sequence[ConversationMessage], limit: int, *, cut: bool
) -> tuple[ConversationMessage, ...] | None:
    """The messages of the newest `limit` completed exchanges, oldest first.

    None where the window was `cut` off from older messages, and those may belong to them.
    """
    pairs = complete_message_pairs(window, limit=limit + 1)
    # One pair more than asked shows that the oldest one kept was not cut at the edge.
    if cut and len(pairs) <= limit:
        return None
    return tuple(message for pair in pairs[-limit:] for message in pair)


def summary_audience(identity: ConversationIdentity) -> str:
    """Where the summary of a conversation is kept."""
    owner = MemoryOwner(
        identity.tenant_id, user_id=identity.user_id, session_id=identity.session_id
    )
    return audience_key(MemoryScope.SESSION, owner) or ""


def page_of(
    rows: Sequence[Row], limit: int, *, secret: bytes, snapshot: Sequence[int]
) -> ConversationPage:
    """The page of up to `limit` of these rows, one more of which shows that another follows.

    Its cursor holds the numbers of the `snapshot` that is listed and those of the last row.
    """
    following = None
    if len(rows) > limit:
        following = seal_cursor(secret, PAGE, *snapshot, *rows[limit - 1][6:])
    return ConversationPage(tuple(map(_summary, rows[:limit])), following)


def _summary(row: Row) -> ConversationSummaryRow:
    session, kind, title, created, activity, messages = row[:6]
    return ConversationSummaryRow(
        session, kind, title, instant_of(created), instant_of(activity), messages
    )
