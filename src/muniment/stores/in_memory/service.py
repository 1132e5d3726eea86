"""What a service keeps beside the memory: leases and keyed requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from muniment.domain.conversation import ConversationIdentity
from muniment.ports import KeyedRequest
from muniment.stores.in_memory.tables import ConversationKey, Tables, key_of


class InMemoryService:
    """The service face: ServiceRecords."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._leases = tables.leases
        self._requests: dict[tuple[str, str, str], tuple[KeyedRequest, datetime]] = {}
        tables.on_conversation_gone.append(self._forget)

    async def acquire(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> float:
        """0 where `holder` has the session's lease now; else seconds until it may be free."""
        now = self._tables.clock()
        with self._tables.lock:
            held, until = self._leases.get(key_of(identity), (holder, now))
            if held != holder and until > now:
                return (until - now).total_seconds()
            self._leases[key_of(identity)] = (holder, now + timedelta(seconds=ttl_seconds))
            return 0.0

    async def renew(
        self, identity: ConversationIdentity, *, holder: str, ttl_seconds: float
    ) -> bool:
        """Keep the lease for longer; False where it is not `holder`'s any more."""
        now = self._tables.clock()
        with self._tables.lock:
            if self._leases.get(key_of(identity), ("", now))[0] != holder:
                return False
            self._leases[key_of(identity)] = (holder, now + timedelta(seconds=ttl_seconds))
            return True

    async def release(self, identity: ConversationIdentity, *, holder: str) -> None:
        """Free the session where `holder` has it."""
        with self._tables.lock:
            if self._leases.get(key_of(identity), ("",))[0] == holder:
                del self._leases[key_of(identity)]

    async def begin(
        self, tenant_id: str, user_id: str, key: str, request: KeyedRequest, *, ttl_seconds: int
    ) -> KeyedRequest:
        """Keep `request` under the user's key; the one that is kept already, where there is."""
        now = self._tables.clock()
        with self._tables.lock:
            for gone in [k for k, (_, until) in self._requests.items() if until <= now]:
                del self._requests[gone]
            fresh = (request, now + timedelta(seconds=ttl_seconds))
            return self._requests.setdefault((tenant_id, user_id, key), fresh)[0]

    async def finish(
        self, tenant_id: str, user_id: str, key: str, *, answer_id: str, envelope: str
    ) -> None:
        """Note the answer of a kept request."""
        with self._tables.lock:
            held = self._requests.get((tenant_id, user_id, key))
            if held is not None:
                done = replace(held[0], answer_id=answer_id, envelope=envelope)
                self._requests[tenant_id, user_id, key] = (done, held[1])

    async def sizes(self) -> Mapping[str, int]:
        """Rows by kind."""
        with self._tables.lock:
            return {
                "memories": len(self._tables.memories),
                "sessions": len(self._tables.conversations),
            }

    def _forget(self, gone: ConversationKey) -> None:
        self._leases.pop(gone, None)
        for key, (request, _) in list(self._requests.items()):
            if (*key[:2], request.session_id) == gone:
                del self._requests[key]
