"""A completion's two writes, each a single job of the thread that writes."""

from __future__ import annotations

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.errors import NotFoundError
from muniment.ports import Begun, Ending
from muniment.stores.messages import embedded
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.messages import append, conversation_row, newest_pairs, titled
from muniment.stores.sqlite.service import finish, release, require_lease, taken


class SQLiteExchanges:
    """The port Exchanges of a SQLite store."""

    def __init__(self, core: Core) -> None:
        self._core = core

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
        vector = await self._vector(question)

        def job(change: Change) -> Begun:
            held = conversation_row(change.db, identity)
            if held is None and new_kind is None:
                raise NotFoundError("no such session")
            wait = taken(change.db, identity, holder, change.now, ttl_seconds)
            if wait:
                return Begun(wait)
            found = () if held is None else newest_pairs(change.db, held[0], pairs)
            if question is not None:
                self._append(change, identity, question, vector, new_kind or "chat")
            return Begun(0.0, found)

        return await self._core.change(job)

    async def end(
        self, identity: ConversationIdentity, ending: Ending, *, holder: str
    ) -> str | None:
        """Store the answer and what comes with it, and free the session; see Exchanges."""
        answer = ending.answer
        vector = await self._vector(answer)

        def job(change: Change) -> str | None:
            if answer is not None:
                require_lease(change.db, identity, holder)
                self._append(change, identity, answer, vector, "chat")
                if ending.title is not None:
                    titled(change, identity, ending.title, by_hand=False)
                if ending.key is not None:
                    envelope = ending.envelope or "{}"
                    finish(change.db, identity, ending.key, answer.message_id, envelope)
            held = conversation_row(change.db, identity)
            release(change.db, identity, holder)
            return None if held is None else held[2]

        return await self._core.change(job)

    async def _vector(self, message: ConversationMessage | None) -> bytes | None:
        if message is None:
            return None
        ((_, vector),) = await embedded(self._core.embedder, [message])
        return vector

    def _append(
        self,
        change: Change,
        identity: ConversationIdentity,
        message: ConversationMessage,
        vector: bytes | None,
        kind: str,
    ) -> None:
        (admitted,) = self._core.admit(change.db, [vector])
        append(change, identity, [(message, admitted)], kind=kind)
