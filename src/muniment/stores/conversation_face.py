"""Conversations in every store: arguments are checked here, rows are the store's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from muniment.domain import checks
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
    normalize_conversation_title,
)
from muniment.stores.embedding import RowEmbedder
from muniment.stores.messages import embedded
from muniment.stores.rows import askable

MOST_MESSAGES = 1_000
Given = tuple[ConversationMessage, bytes | None]
"""A message and its vector."""


class Conversations(ABC):
    """The conversation face: ConversationMessageStore, ConversationSessions, -Directory.

    Every question names its user: a conversation by its identity, a listing by tenant and user.
    """

    most_messages = MOST_MESSAGES
    """How many messages or exchanges may be asked for at once."""

    def __init__(self, embedder: RowEmbedder) -> None:
        self._embedder = embedder

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
        if given:
            await self._append(identity, await embedded(self._embedder, given), lease)

    async def recent_messages(
        self, identity: ConversationIdentity, *, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """The newest `limit` (1..1000), oldest first."""
        return await self._recent(identity, self._few(limit))

    async def recent_complete_messages(
        self, identity: ConversationIdentity, *, limit: int = 3
    ) -> tuple[ConversationMessage, ...]:
        """The messages of the newest `limit` (1..1000) completed exchanges, oldest first."""
        return await self._recent_pairs(identity, self._few(limit))

    async def messages_after(
        self, identity: ConversationIdentity, *, after_message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """Up to `limit` (1..1000) later messages, oldest first; None is from the start.

        ValueError for a message that is not of this conversation.
        """
        after = None if after_message_id is None else askable(after_message_id)
        found = await self._after(identity, after, self._few(limit))
        if found is None:
            raise ValueError("after_message_id: not a message of this conversation")
        return found

    async def clear_messages(self, identity: ConversationIdentity) -> None:
        """Delete the conversation's messages and the summary that covered them."""
        await self._clear(identity)

    # -- sessions --------------------------------------------------------------------------

    async def create(
        self, identity: ConversationIdentity, *, kind: str = "chat", title: str | None = None
    ) -> None:
        """Make the conversation known; an existing one stays as it is.

        A title given here is by hand.
        """
        kind = checks.identifier("kind", kind, maximum=32)
        await self._create(identity, kind, normalize_conversation_title(title))

    async def exists(self, identity: ConversationIdentity, *, kind: str | None = None) -> bool:
        """Whether the conversation is known, of `kind` where one is named."""
        held = await self._session(identity)
        return held is not None and kind in (None, held[0])

    async def delete(self, identity: ConversationIdentity) -> bool:
        """Delete the conversation with its messages and the memories of its own scopes."""
        return await self._delete(identity)

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
        """Newest activity first, as of the first page; `limit` is 1..100.

        ValueError for a cursor that is not this store's.
        """
        checks.whole("limit", limit, low=1, high=100)
        mine = (checks.identifier("tenant_id", tenant_id), checks.identifier("user_id", user_id))
        return await self._page(mine, kind, cursor, limit)

    async def rename_conversation(
        self, identity: ConversationIdentity, *, title: str | None
    ) -> bool:
        """Set or clear the title by hand; False where there is no such conversation."""
        return await self._title(identity, normalize_conversation_title(title), by_hand=True)

    async def set_generated_title(self, identity: ConversationIdentity, *, title: str) -> bool:
        """Set the title unless it is blank, or one was set or cleared by hand."""
        generated = normalize_conversation_title(title)
        return generated is not None and await self._title(identity, generated, by_hand=False)

    async def get_title(self, identity: ConversationIdentity) -> str | None:
        """The title, None without one."""
        held = await self._session(identity)
        return None if held is None else held[1]

    def _few(self, limit: int) -> int:
        return checks.whole("limit", limit, low=1, high=self.most_messages)

    # -- what a store does with its rows -----------------------------------------------------

    @abstractmethod
    async def _append(
        self, identity: ConversationIdentity, messages: Sequence[Given], lease: str | None
    ) -> None:
        """Append what is new of these, there is at least one, and make the conversation."""

    @abstractmethod
    async def _recent(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """The newest messages, oldest first."""

    @abstractmethod
    async def _recent_pairs(
        self, identity: ConversationIdentity, limit: int
    ) -> tuple[ConversationMessage, ...]:
        """The messages of the newest completed exchanges, oldest first."""

    @abstractmethod
    async def _after(
        self, identity: ConversationIdentity, message_id: str | None, limit: int
    ) -> tuple[ConversationMessage, ...] | None:
        """The messages that follow one, or the first ones; None where that one is not there."""

    @abstractmethod
    async def _clear(self, identity: ConversationIdentity) -> None:
        """Delete messages and summary, in one change."""

    @abstractmethod
    async def _create(self, identity: ConversationIdentity, kind: str, title: str | None) -> None:
        """Make the conversation where there is none."""

    @abstractmethod
    async def _session(self, identity: ConversationIdentity) -> tuple[str, str | None] | None:
        """The conversation's kind and title."""

    @abstractmethod
    async def _delete(self, identity: ConversationIdentity) -> bool:
        """Delete the conversation and what is kept for it alone, in one change."""

    @abstractmethod
    async def _page(
        self, mine: tuple[str, str], kind: str | None, cursor: str | None, limit: int
    ) -> ConversationPage:
        """A page of what this tenant's user has."""

    @abstractmethod
    async def _title(
        self, identity: ConversationIdentity, title: str | None, *, by_hand: bool
    ) -> bool:
        """Set the title, never over one by hand unless `by_hand`; whether it was set."""
