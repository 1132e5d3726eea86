"""Storing conversations from elsewhere as one user's own; doing it again changes nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    conversation_identity,
)
from muniment.domain.owner import MemoryOwner
from muniment.integrations.exported_chats import ExportedChat
from muniment.ports import ConversationDirectory, ConversationMessageStore

_PAGE = 500
_PART = 64
_REMEMBERED = 256


class Conversations(ConversationMessageStore, ConversationDirectory, Protocol):
    """The parts of a store that an import needs."""


@dataclass(slots=True)
class ChatCounts:
    """What became of the conversations of a file.

    Of the messages, `stored` are new, `known` were there already, and `changed` were there with
    other words, which stay. `unspoken` and `refused` are as in `ExportedChat`.
    """

    conversations: int = 0
    stored: int = 0
    known: int = 0
    changed: int = 0
    unspoken: int = 0
    refused: int = 0
    _seen: set[str] = field(default_factory=set, repr=False)

    def count(self, chat: ExportedChat) -> None:
        """Count a conversation, or a further part of one."""
        self._seen.add(chat.session_id)
        self.conversations = len(self._seen)
        self.unspoken += chat.unspoken
        self.refused += chat.refused


class ChatImport:
    """Appends exported conversations to those of `owner`, whose session is not looked at."""

    def __init__(self, conversations: Conversations, owner: MemoryOwner) -> None:
        self._conversations = conversations
        self._owner = owner
        self._held: OrderedDict[str, dict[str, int]] = OrderedDict()
        self.counts = ChatCounts()

    async def run(
        self, chats: Iterable[ExportedChat], progress: Callable[[int], None] | None = None
    ) -> ChatCounts:
        """Store what is new; `progress` gets the number of messages dealt with so far.

        Raises what the store raises; what was stored until then stays, and doing it again goes
        on from there.
        """
        for chat in chats:
            self.counts.count(chat)
            identity = conversation_identity(replace(self._owner, session_id=chat.session_id))
            fresh = self._fresh(await self._messages_of(identity), chat.messages)
            for start in range(0, len(fresh), _PART):
                part = fresh[start : start + _PART]
                await self._conversations.append_messages(identity, part)
                self.counts.stored += len(part)
                if progress is not None:
                    progress(self._done)
            if chat.title is not None and fresh:
                await self._conversations.set_generated_title(identity, title=chat.title)
            if progress is not None:
                progress(self._done)
        return self.counts

    @property
    def _done(self) -> int:
        return self.counts.stored + self.counts.known + self.counts.changed

    def _fresh(
        self, held: dict[str, int], messages: Sequence[ConversationMessage]
    ) -> list[ConversationMessage]:
        fresh = []
        for message in messages:
            before = held.get(message.message_id)
            if before is None:
                held[message.message_id] = _words(message)
                fresh.append(message)
            elif before == _words(message):
                self.counts.known += 1
            else:
                self.counts.changed += 1
        return fresh

    async def _messages_of(self, identity: ConversationIdentity) -> dict[str, int]:
        """The messages that the store holds of one conversation, and what they say."""
        held = self._held.pop(identity.session_id, None)
        if held is None:
            held = await self._read(identity)
        self._held[identity.session_id] = held
        if len(self._held) > _REMEMBERED:
            self._held.popitem(last=False)
        return held

    async def _read(self, identity: ConversationIdentity) -> dict[str, int]:
        held: dict[str, int] = {}
        last = None
        while True:
            page = await self._conversations.messages_after(
                identity, after_message_id=last, limit=_PAGE
            )
            held |= {message.message_id: _words(message) for message in page}
            if len(page) < _PAGE:
                return held
            last = page[-1].message_id


def _words(message: ConversationMessage) -> int:
    """Equal where a store would take two messages for one; only compared within this process."""
    return hash((message.role, message.content, message.tool_calls_json, message.tool_call_id))
