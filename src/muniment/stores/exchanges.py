"""A completion's two writes, for a store that makes them of several."""

from __future__ import annotations

from typing import Protocol

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.errors import NotFoundError
from muniment.ports import (
    Begun,
    ConversationDirectory,
    ConversationMessageStore,
    ConversationSessions,
    Ending,
    LeasedAppends,
    ServiceRecords,
)


class Conversations(
    LeasedAppends, ConversationMessageStore, ConversationSessions, ConversationDirectory, Protocol
):
    """A store's conversation face."""


class ComposedExchanges:
    """The port Exchanges over a store's conversations and leases.

    The lease is taken before anything is stored, and freed after everything is. It stays taken
    where the end fails, until it is given back or runs out.
    """

    def __init__(self, conversations: Conversations, service: ServiceRecords) -> None:
        self._conversations = conversations
        self._service = service

    async def begin(
        self,
        identity: ConversationIdentity,
        question: ConversationMessage | None,
        *,
        holder: str,
        ttl_seconds: float,
        new_kind: str | None,
        pairs: int,
    ) -> Begun:
        """Take the lease, read, and store the question; see Exchanges."""
        if new_kind is None and not await self._conversations.exists(identity):
            raise NotFoundError("no such session")
        wait = await self._service.acquire(identity, holder=holder, ttl_seconds=ttl_seconds)
        if wait:
            return Begun(wait)
        try:  # only now: who had the session may have answered until then
            newest = await self._conversations.recent_complete_messages(identity, limit=pairs)
            if question is not None:
                if new_kind is not None:
                    await self._conversations.create(identity, kind=new_kind)
                await self._conversations.append_messages(identity, [question], lease=holder)
        except BaseException:
            await self._service.release(identity, holder=holder)
            raise
        return Begun(0.0, tuple(newest))

    async def end(
        self, identity: ConversationIdentity, ending: Ending, *, holder: str
    ) -> str | None:
        """Store the answer and what comes with it, and free the session; see Exchanges."""
        if ending.answer is not None:
            answer = ending.answer
            await self._conversations.append_messages(identity, [answer], lease=holder)
            await self._beside(identity, ending, answer.message_id)
        title = await self._conversations.get_title(identity)
        await self._service.release(identity, holder=holder)
        return title

    async def _beside(self, identity: ConversationIdentity, ending: Ending, answer_id: str) -> None:
        if ending.title is not None:
            await self._conversations.set_generated_title(identity, title=ending.title)
        if ending.key is not None:
            await self._service.finish(
                identity.tenant_id,
                identity.user_id,
                ending.key,
                answer_id=answer_id,
                envelope=ending.envelope or "{}",
            )
