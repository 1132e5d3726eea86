"""Folding messages into a conversation's summary, in bounded pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from muniment.context.guarded import TurnGuard
from muniment.context.policy import MemoryPolicy
from muniment.context.prompts import summary as prompt
from muniment.context.prompts.transcript import transcript_line
from muniment.context.tokens import TokenCounter, clip
from muniment.context.window import Messages, keep_boundary
from muniment.domain.conversation import (
    ConversationMessage,
    ConversationRole,
    conversation_identity,
)
from muniment.domain.frozen import thaw
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, with_user
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.ports import ConversationMessageStore, MemoryModel, MemoryRepository

FRONTIER = "last_covered_message_id"
MAX_PAGES = 4
_PAGE_MESSAGES = 50
_TRANSCRIPT_TOKENS = 3_000
_MESSAGE_TOKENS = 1_000
_SUMMARY_TOKENS = 1_000
# Four bytes a character at most stay below what any store takes as one text.
_SUMMARY_CHARACTERS = 2_000


def summary_memory_id(owner: MemoryOwner) -> str:
    """The one summary row's id of a session, from tenant, user and session.

    MemoryScopeError without principal and session.
    """
    identity = conversation_identity(owner, subject="a summary")
    parts = [identity.tenant_id, identity.user_id, identity.session_id]
    return "sum_" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The summary after this turn's refresh, and whether anything was written."""

    summary: Memory | None
    written: bool = False


class Folding:
    """One turn's refresh: at most MAX_PAGES model calls, the row saved after each."""

    def __init__(
        self,
        *,
        policy: MemoryPolicy,
        messages: ConversationMessageStore,
        memories: MemoryRepository,
        model: MemoryModel,
        counter: TokenCounter,
        guard: TurnGuard,
        now: datetime,
    ) -> None:
        self._policy = policy
        self._messages = messages
        self._memories = memories
        self._model = model
        self._counter = counter
        self._guard = guard
        self._now = now
        self._folded: list[str] = []

    async def run(self, owner: MemoryOwner, summary: Memory | None, loaded: Messages) -> Refreshed:
        """Fold what lies between the summary's frontier and the messages to keep."""
        self._owner, self._summary, self._loaded = owner, summary, loaded
        self._cursor = summary.metadata.get(FRONTIER) if summary else None
        for _ in range(MAX_PAGES):
            pending = await self._pending()
            if not pending or not await self._fold(pending):
                break
        return Refreshed(self._summary, bool(self._folded))

    async def _pending(self) -> Messages:
        boundary = keep_boundary(self._loaded, self._policy.summary_keep_messages)
        places = {message.message_id: place for place, message in enumerate(self._loaded)}
        if self._cursor in places:
            return self._loaded[places[self._cursor] + 1 : boundary]
        if self._cursor is None and len(self._loaded) < self._policy.recent_max_messages:
            return self._loaded[:boundary]
        page = await self._guard.run("read unsummarized messages", self._page, ())
        if any(m.message_id == self._cursor or m.message_id in self._folded for m in page):
            self._guard.warn("read unsummarized messages", "stopped", "CursorDidNotAdvance")
            return ()
        return _before(page, self._loaded[boundary:])

    async def _page(self) -> Sequence[ConversationMessage]:
        identity = conversation_identity(self._owner)
        try:
            return await self._messages.messages_after(
                identity, after_message_id=self._cursor, limit=_PAGE_MESSAGES
            )
        except ValueError:
            if self._cursor is None:
                raise
        # The frontier's message is gone, and with it what the summary stands on: begin anew.
        self._cursor = self._summary = None
        return await self._messages.messages_after(
            identity, after_message_id=None, limit=_PAGE_MESSAGES
        )

    async def _fold(self, pending: Messages) -> bool:
        lines = self._lines(pending)
        batch = pending[: len(lines)]
        text = await self._guard.run("summarize", lambda: self._summarized(lines), None)
        if text is None:
            return False
        saved = await self._guard.run("save summary", lambda: self._saved(text, batch), None)
        if saved is None:
            return False
        self._summary, self._cursor = saved, batch[-1].message_id
        self._folded += (message.message_id for message in batch)
        return True

    def _lines(self, pending: Messages) -> list[str]:
        lines: list[str] = []
        left = _TRANSCRIPT_TOKENS
        for message in pending:
            line = clip(transcript_line(message), _MESSAGE_TOKENS, self._counter)
            left -= self._counter(line)
            if lines and left < 0:
                break
            lines.append(line)
        return lines

    async def _summarized(self, lines: Sequence[str]) -> str:
        prior = self._summary.content if self._summary else ""
        user = prompt.user_prompt(clip(prior, _SUMMARY_TOKENS, self._counter), lines)
        reply = await self._model.generate_text(system=prompt.SYSTEM, user=user)
        text = clip(prompt.read_reply(reply), _SUMMARY_TOKENS, self._counter)
        if not text.strip():
            raise ValueError("the summary is empty")
        return text[:_SUMMARY_CHARACTERS]

    async def _saved(self, text: str, batch: Messages) -> Memory:
        row = self._row(text, batch)
        await self._memories.save(row)
        return row

    def _row(self, text: str, batch: Messages) -> Memory:
        row = self._summary or self._first_row(text)
        updated = max(self._now, row.created_at)
        return replace(
            row,
            memory_id=summary_memory_id(self._owner),
            content=text,
            metadata={**thaw(row.metadata), FRONTIER: batch[-1].message_id},
            updated_at=updated,
            expires_at=self._policy.retention.expires_at(MemoryScope.SESSION, updated),
            source_message_ids=(*self._folded, *(message.message_id for message in batch)),
        )

    def _first_row(self, text: str) -> Memory:
        return Memory(
            memory_id=summary_memory_id(self._owner),
            scope=MemoryScope.SESSION,
            memory_type=MemoryType.SUMMARY,
            owner=with_user(self._owner),
            content=text,
            created_at=self._now,
            source_session_id=self._owner.session_id,
            trust=Trust.MODEL,
            source="summary",
        )


def _before(page: Sequence[ConversationMessage], kept: Messages) -> Messages:
    """The part of `page` before the first kept message, an exchange that runs into it left out."""
    ends = {message.message_id for message in kept}
    for place, message in enumerate(page):
        if message.message_id in ends:
            whole = message.role is ConversationRole.USER
            return tuple(page[:place] if whole else page[: keep_boundary(page[:place], 1)])
    return tuple(page)
