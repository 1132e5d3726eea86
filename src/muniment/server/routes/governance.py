"""`/v1/memory`: usage and erasure."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from muniment.domain.conversation import ConversationIdentity
from muniment.domain.owner import MemoryOwner
from muniment.server.bodies import StrictRoute
from muniment.server.completions.lease import SessionLease
from muniment.server.identity import Admin, Reader
from muniment.server.problems import not_found
from muniment.server.routes.documented import ITEM, SIGNED, problems
from muniment.server.routes.sessions import SessionId, contents, conversation, forget_runs
from muniment.server.services import Services, Serving
from muniment.server.values import Identifier
from muniment.stores.erasure import ErasureResult

router = APIRouter(route_class=StrictRoute, prefix="/v1/memory", tags=["governance"])

UserId = Annotated[str, Path(min_length=1, max_length=256)]


class Erased(BaseModel):
    """What is gone: memories, those that were derived from them, conversations, messages, states
    of runs. `pending` says that bytes wait for a reader to finish; `receipt` can be held against
    the audit log, and is null where there was nothing."""

    entries: int
    derived: int
    sessions: int
    messages: int
    working_states: int
    checkpoints: int
    pending: bool
    receipt: str | None


class UsageReport(BaseModel):
    """What is stored of the selection, and what the tenant's searches served on one UTC day."""

    entries: int
    stored_tokens: int
    period: str
    searches: int
    served_entries: int
    served_tokens: int


@router.delete("/sessions/{session_id}", name="erase_session", responses=problems(*ITEM, 409))
async def erase_session(services: Serving, caller: Reader, session_id: SessionId) -> Erased:
    """Erase one's own session with what was derived from it, in every scope."""
    identity = conversation(caller, session_id)
    seconds = services.settings.lease_seconds
    lease = SessionLease(services.memory.store.service, identity, seconds=seconds)
    await lease.take()
    try:
        held = await contents(services, identity)
        owner = MemoryOwner(caller.tenant, user_id=caller.user, session_id=identity.session_id)
        result = await services.memory.store.erase(owner)
    finally:
        await lease.give_back()
    if not result.anything:
        raise not_found()
    return _told(result, await forget_runs(services, identity, held.run_ids))


@router.delete("/users/{user_id}", name="erase_user", responses=problems(*ITEM))
async def erase_user(services: Serving, caller: Admin, user_id: UserId) -> Erased:
    """Erase a user of the tenant: sessions, history, memories, and what was derived from them."""
    owner = MemoryOwner(caller.tenant, user_id=user_id)
    anywhere = ConversationIdentity(caller.tenant, None, "any", user_id)
    run_ids = await _runs_of(services, anywhere)
    result = await services.memory.store.erase(owner)
    return _told(result, await forget_runs(services, anywhere, run_ids))


@router.get("/usage", name="usage", responses=problems(*SIGNED))
async def usage(
    services: Serving,
    caller: Admin,
    user_id: Annotated[Identifier | None, Query()] = None,
    session_id: Annotated[Identifier | None, Query()] = None,
    period: Annotated[str | None, Query(max_length=32, description="YYYY-MM-DD, UTC.")] = None,
) -> UsageReport:
    """How much of the tenant, of a user or of a user's session is stored."""
    whose = MemoryOwner(caller.tenant, user_id=user_id, session_id=session_id)
    found = await services.memory.store.usage(whose, period)
    return UsageReport(
        entries=found.entries,
        stored_tokens=found.stored_tokens,
        period=found.period,
        searches=found.searches,
        served_entries=found.served_entries,
        served_tokens=found.served_tokens,
    )


async def _runs_of(services: Services, user: ConversationIdentity) -> set[str]:
    """The runs of all of a user's sessions."""
    found: set[str] = set()
    cursor: str | None = None
    while services.agent is not None:
        page = await services.memory.conversations.list_conversations(
            tenant_id=user.tenant_id, user_id=user.user_id, cursor=cursor, limit=100
        )
        for row in page.conversations:
            held = await contents(services, replace(user, session_id=row.session_id))
            found |= held.run_ids
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _told(result: ErasureResult, checkpoints: int) -> Erased:
    return Erased(
        entries=result.entries,
        derived=result.derived,
        sessions=result.sessions,
        messages=result.messages,
        working_states=result.working_states,
        checkpoints=checkpoints,
        pending=result.pending,
        receipt=result.receipt,
    )
