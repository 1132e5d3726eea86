"""One question and its answer: what is stored of them, and when."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationRole,
)
from muniment.domain.identifiers import new_message_id
from muniment.server.completions.citations import Passage, used
from muniment.server.completions.lease import SessionLease
from muniment.server.completions.title import title_of
from muniment.server.services import Services
from muniment.wiring import Conversations

_log = logging.getLogger("muniment.server.completions")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said: all of it, or what there was when it broke off (`partial`)."""

    content: str
    tool_calls: Sequence[Any] = ()
    partial: bool = False
    envelope: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a completion tells beside OpenAI's fields."""

    session_id: str
    title: str | None
    memory_persisted: bool
    citations: list[dict[str, Any]]
    run_id: str | None

    def fields(self) -> dict[str, Any]:
        """The fields at the top level of the answer."""
        return {
            "session_id": self.session_id,
            "title": self.title,
            "memory_persisted": self.memory_persisted,
            "citations": self.citations,
            "run_id": self.run_id,
        }


@dataclass(slots=True)
class Exchange:
    """One question under way. The session's lease is ours until `keep` has ended.

    `first` says that the session had no completed exchange; `stored` that the question is stored;
    `new_kind` is the kind of a session that this exchange makes.
    """

    services: Services
    identity: ConversationIdentity
    lease: SessionLease
    question: str
    question_id: str
    key: str | None = None
    run_id: str | None = None
    new_kind: str | None = None
    first: bool = False
    stored: bool = False
    prompt: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    passages: Sequence[Passage] = ()

    async def store_question(self) -> None:
        """Store the question before the model is asked; without it nothing of this is kept."""
        message = self._message(self.question_id, ConversationRole.USER, self.question)
        try:
            async with self._bounded():
                if self.new_kind is not None:
                    await self._conversations.create(self.identity, kind=self.new_kind)
                await self._conversations.append_messages(self.identity, [message])
            self.stored = True
        except Exception as error:
            self._degraded("question", error)

    async def keep(self, answer: Answer) -> Kept:
        """Store the answer, title the session, note the key, and free the session. Never raises:
        what cannot be kept leaves the answer as good as it is."""
        citations = used(answer.content, self.passages)
        saved, title = False, None
        try:
            async with self._bounded():
                message = await self._store_answer(answer, citations)
                saved = message is not None
                titling = self._titled(saved and self.first and not answer.partial)
                title, _ = await asyncio.gather(titling, self._finish(message, answer))
        except Exception as error:
            self._degraded("answer", error)
        finally:
            await self.lease.give_back()
        session = self.identity.session_id
        return Kept(session, title, saved and not answer.partial, citations, self.run_id)

    async def _store_answer(
        self, answer: Answer, citations: list[dict[str, Any]]
    ) -> ConversationMessage | None:
        """The stored message; None where there is nothing to store."""
        if not self.stored or not (answer.content.strip() or answer.tool_calls):
            return None
        message = self._message(
            new_message_id(),
            ConversationRole.ASSISTANT,
            answer.content,
            tool_calls_json=json.dumps(list(answer.tool_calls)) if answer.tool_calls else None,
            citations_json=json.dumps(citations) if citations else None,
            partial=answer.partial,
        )
        # With the lease: an answer must not bring back a session that was deleted meanwhile.
        await self._conversations.append_messages(self.identity, [message], lease=self.lease.holder)
        return message

    async def _finish(self, message: ConversationMessage | None, answer: Answer) -> None:
        if self.key is None or message is None or answer.partial:
            return
        await self.services.memory.store.service.finish(
            self.identity.tenant_id,
            self.identity.user_id,
            self.key,
            answer_id=message.message_id,
            envelope=json.dumps(answer.envelope or {}),
        )

    async def _titled(self, first: bool) -> str | None:
        title = title_of(self.question)
        if first and await self._conversations.set_generated_title(self.identity, title=title):
            return title
        return await self._conversations.get_title(self.identity)

    def _message(
        self, message_id: str, role: ConversationRole, content: str, **more: Any
    ) -> ConversationMessage:
        now = datetime.now(UTC)
        return ConversationMessage(message_id, role, content, now, run_id=self.run_id, **more)

    def _bounded(self) -> asyncio.Timeout:
        return asyncio.timeout(self.services.memory.policy.call_timeout_seconds)

    def _degraded(self, what: str, error: Exception) -> None:
        self.services.metrics.degraded(f"{what}-not-stored")
        _log.warning(
            "the %s was not stored in %s (%s)", what, self.identity.session_id, type(error).__name__
        )

    @property
    def _conversations(self) -> Conversations:
        return self.services.memory.conversations
