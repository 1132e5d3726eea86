"""Short-term memory: the turns of a conversation, kept as long as its session."""

from __future__ import annotations

from muniment.domain import checks
from muniment.domain.clock import Clock, clock_of
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationRole,
    ConversationTurn,
    conversation_identity,
    turns_from_messages,
)
from muniment.domain.identifiers import new_message_id
from muniment.domain.owner import MemoryOwner
from muniment.ports import ConversationMemory, ConversationMessageStore

MAX_RECENT_TURNS = 1000


class ShortTermMemory:
    """Turns by owner. Each call needs principal and session (MemoryScopeError otherwise).

    The owner is built from the authenticated request, never from fields that a user or a model
    supplies.
    """

    def __init__(self, conversation: ConversationMemory) -> None:
        self._conversation = conversation

    async def recent(self, owner: MemoryOwner, *, limit: int = 2) -> tuple[ConversationTurn, ...]:
        """The newest `limit` (1..1000) turns, oldest first; ValueError for another limit."""
        checks.whole("limit", limit, low=1, high=MAX_RECENT_TURNS)
        return tuple(await self._conversation.recent(_identity(owner), limit=limit))

    async def append(self, owner: MemoryOwner, turn: ConversationTurn) -> None:
        """Add one finished turn."""
        await self._conversation.append(_identity(owner), turn)

    async def clear(self, owner: MemoryOwner) -> None:
        """Forget the conversation's turns."""
        await self._conversation.clear(_identity(owner))


class MessageTurns:
    """A message store as the turns that its messages make."""

    def __init__(self, messages: ConversationMessageStore, *, clock: Clock | None = None) -> None:
        self._messages = messages
        self._clock = clock_of(clock)

    async def recent(
        self, identity: ConversationIdentity, *, limit: int = 2
    ) -> tuple[ConversationTurn, ...]:
        """The newest `limit` completed exchanges, oldest first."""
        messages = await self._messages.recent_complete_messages(identity, limit=limit)
        return turns_from_messages(messages)[-limit:]

    async def append(self, identity: ConversationIdentity, turn: ConversationTurn) -> None:
        """Store the turn as its two messages."""
        now = self._clock()
        said = (
            (ConversationRole.USER, turn.user_content),
            (ConversationRole.ASSISTANT, turn.assistant_content),
        )
        messages = [ConversationMessage(new_message_id(), role, text, now) for role, text in said]
        await self._messages.append_messages(identity, messages)

    async def clear(self, identity: ConversationIdentity) -> None:
        """Delete the conversation's messages."""
        await self._messages.clear_messages(identity)


def _identity(owner: MemoryOwner) -> ConversationIdentity:
    return conversation_identity(owner, subject="short-term memory")
