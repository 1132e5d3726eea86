"""One completion at a time a session, whichever replica serves it."""

from __future__ import annotations

import asyncio
import contextlib
import math

from muniment.domain.conversation import ConversationIdentity
from muniment.domain.identifiers import new_message_id
from muniment.errors import MemoryStoreError
from muniment.ports import ServiceRecords
from muniment.server.problems import Problem


class SessionLease:
    """A session's lease, renewed until it is given back. It ends by itself with its process."""

    def __init__(
        self, records: ServiceRecords, identity: ConversationIdentity, *, seconds: float
    ) -> None:
        self._records = records
        self._identity = identity
        self.seconds = seconds
        self.holder = new_message_id()
        self._keeper: asyncio.Task[None] | None = None

    async def take(self) -> None:
        """Take the session; Problem 409 with Retry-After where another has it."""
        self.taken(
            await self._records.acquire(
                self._identity, holder=self.holder, ttl_seconds=self.seconds
            )
        )

    def taken(self, wait: float) -> None:
        """Keep the session, taken where `wait` is 0; Problem 409 where another has it so long."""
        if wait > 0:
            # The other is likely done long before its lease would end.
            raise Problem(
                409,
                "session-busy",
                "another completion of this session is under way",
                retry_after=min(math.ceil(wait), 2),
            )
        self._keeper = asyncio.create_task(self._keep())

    def ended(self) -> None:
        """The session is free, or about to be: the lease is not renewed any more."""
        if self._keeper is not None:
            self._keeper.cancel()

    async def held(self) -> bool:
        """Whether the session is still there and still ours."""
        return await self._records.renew(
            self._identity, holder=self.holder, ttl_seconds=self.seconds
        )

    async def give_back(self) -> None:
        """Free the session; where the store cannot, the lease ends by itself."""
        self.ended()
        with contextlib.suppress(MemoryStoreError, TimeoutError):
            async with asyncio.timeout(self.seconds):
                await self._records.release(self._identity, holder=self.holder)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self.seconds / 3)
            with contextlib.suppress(MemoryStoreError):
                await self.held()
