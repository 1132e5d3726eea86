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
from muniment.errors import NotFoundError
from muniment.ports import Begun, Ending
from muniment.server.completions.citations import Passage, used
from muniment.server.completions.lease import SessionLease
from muniment.server.completions.prompt import EXCHANGES
from muniment.server.completions.title import title_of
from muniment.server.services import Services

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

    `first` says that the session had no completed exchange; `taken` that the store gave us its
    lease; `stored` that the question is stored; `new_kind` is the kind of a session that this
    exchange makes, None where it is there already.
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
    taken: bool = False
    stored: bool = False
    prompt: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    passages: Sequence[Passage] = ()

    async def begin(self, *, storing: bool) -> tuple[ConversationMessage, ...] | None:
        """Take the session; its newest completed exchanges. The question is stored with it where
        `storing`. None where the store cannot say: then nothing of this is kept. NotFoundError
        for a session that is not there, Problem 409 for a busy one."""
        try:
            begun = await self._begun(storing=storing)
        except NotFoundError:
            raise
        except Exception as error:
            self._degraded("exchange", error)
            return None
        self.lease.taken(begun.wait)
        self.taken, self.stored = True, storing
        return begun.pairs

    async def store_question(self) -> None:
        """Store the question of a session that `begin` took; without it nothing of this is kept."""
        try:
            await self._begun(storing=True)
            self.stored = True
        except Exception as error:
            self._degraded("question", error)

    async def _begun(self, *, storing: bool) -> Begun:
        question = self._message(self.question_id, ConversationRole.USER, self.question)
        async with self._bounded():
            return await self.services.memory.store.exchanges.begin(
                self.identity,
                question if storing else None,
                holder=self.lease.holder,
                ttl_seconds=self.lease.seconds,
                new_kind=self.new_kind,
                pairs=EXCHANGES,
            )

    async def keep(self, answer: Answer) -> Kept:
        """Store the answer, title the session, note the key, and free the session. Never raises:
        what cannot be kept leaves the answer as good as it is."""
        citations = used(answer.content, self.passages)
        ending = self._ending(answer, citations)
        saved, title = False, None
        self.lease.ended()
        try:
            async with self._bounded():
                title = await self.services.memory.store.exchanges.end(
                    self.identity, ending, holder=self.lease.holder
                )
            saved = ending.answer is not None
        except Exception as error:
            self._degraded("answer", error)
            await self.lease.give_back()
        session = self.identity.session_id
        return Kept(session, title, saved and not answer.partial, citations, self.run_id)

    def _ending(self, answer: Answer, citations: list[dict[str, Any]]) -> Ending:
        """What is kept of `answer`: nothing where there is none, or no question to it."""
        if not self.stored or not (answer.content.strip() or answer.tool_calls):
            return Ending()
        message = self._message(
            new_message_id(),
            ConversationRole.ASSISTANT,
            answer.content,
            tool_calls_json=json.dumps(list(answer.tool_calls)) if answer.tool_calls else None,
            citations_json=json.dumps(citations) if citations else None,
            partial=answer.partial,
        )
        if answer.partial:
            return Ending(message)
        title = title_of(self.question) if self.first else None
        return Ending(message, title, self.key, json.dumps(answer.envelope or {}))

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
