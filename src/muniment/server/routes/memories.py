"""`/v1/memory/memories`: long-term memories, by visibility and role."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from muniment.domain.cursor import decode_cursor, encode_cursor
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.server.bodies import StrictRoute
from muniment.server.identity import Caller, Reader, Role
from muniment.server.problems import Problem, invalid, not_found
from muniment.server.routes.documented import ITEM, problems
from muniment.server.routes.memory_rows import MemoryRow, memory_row
from muniment.server.services import Serving
from muniment.server.values import Identifier, Instant, Text

router = APIRouter(route_class=StrictRoute, prefix="/v1/memory/memories", tags=["memory"])

NEEDED = {
    MemoryScope.RUN: Role.READER,
    MemoryScope.SESSION: Role.READER,
    MemoryScope.USER: Role.READER,
    MemoryScope.PROJECT: Role.EDITOR,
    MemoryScope.TENANT: Role.ADMIN,
}
_CURSOR = "memories"
_MICROS = 1_000_000

MemoryId = Annotated[str, Path(min_length=1, max_length=256)]
ProjectId = Annotated[Identifier | None, Query()]
SessionId = Annotated[Identifier | None, Query()]


class NewMemory(BaseModel):
    """A memory to be stored. `replaces` is the id of the one that it follows on."""

    model_config = ConfigDict(extra="forbid")
    content: Text
    scope: Literal["user", "session", "project", "tenant"] = "user"
    memory_type: Literal["fact", "preference", "decision", "episode"] = "fact"
    project_id: Identifier | None = None
    session_id: Identifier | None = None
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    trust: Literal["untrusted", "model", "owner"] = "untrusted"
    valid_from: Instant | None = None
    replaces: Identifier | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class MemoryPage(BaseModel):
    """A page of memories, newest first."""

    memories: list[MemoryRow]
    next_cursor: str | None


class MemoryHistory(BaseModel):
    """The memories that followed each other, oldest first."""

    memories: list[MemoryRow]


@router.get("", name="list_memories", responses=problems(*ITEM))
async def listed(
    services: Serving,
    caller: Reader,
    scope: MemoryScope | None = None,
    project_id: ProjectId = None,
    session_id: SessionId = None,
    kind: Annotated[MemoryType | None, Query(alias="type")] = None,
    as_of: Instant | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> MemoryPage:
    """What the caller may see, valid now (or at `as_of`), newest first."""
    query = MemoryQuery(
        caller.owner(session_id, project_id),
        scopes=() if scope is None else (scope,),
        memory_types=() if kind is None else (kind,),
        as_of=as_of,
        limit=limit + 1,
    )
    found = await services.memory.store.memories.page(query, after=_place(cursor))
    page = found[:limit]
    following = _cursor(page[-1]) if len(found) > limit else None
    return MemoryPage(memories=[memory_row(each, caller) for each in page], next_cursor=following)


@router.get("/{memory_id}", name="get_memory", responses=problems(*ITEM))
async def one(
    services: Serving,
    caller: Reader,
    memory_id: MemoryId,
    project_id: ProjectId = None,
    session_id: SessionId = None,
) -> MemoryRow:
    """One memory that the caller may see."""
    owner = caller.owner(session_id, project_id)
    memory = await services.memory.store.memories.get(owner, memory_id)
    if memory is None:
        raise not_found("memory")
    return memory_row(memory, caller)


@router.get("/{memory_id}/history", name="memory_history", responses=problems(*ITEM))
async def history(
    services: Serving,
    caller: Reader,
    memory_id: MemoryId,
    project_id: ProjectId = None,
    session_id: SessionId = None,
) -> MemoryHistory:
    """What was believed before and after it, oldest first."""
    chain = await services.memory.history(caller.owner(session_id, project_id), memory_id)
    if not chain:
        raise not_found("memory")
    return MemoryHistory(memories=[memory_row(each, caller) for each in chain])


@router.post("", name="store_memory", status_code=201, responses=problems(*ITEM, 507))
async def store(services: Serving, caller: Reader, body: NewMemory) -> MemoryRow:
    """Store a memory; one that is known already is answered as it is. Trust is capped at `model`
    below admin."""
    scope = MemoryScope(body.scope)
    require_role(caller, scope)
    memory = await services.memory.remember(
        caller.owner(body.session_id, body.project_id),
        body.content,
        memory_type=body.memory_type,
        scope=scope,
        trust=capped(caller, Trust(body.trust)),
        importance=body.importance,
        valid_from=body.valid_from,
        replaces=body.replaces,
        metadata=body.metadata,
    )
    return memory_row(memory, caller)


@router.delete("/{memory_id}", name="forget_memory", status_code=204, responses=problems(*ITEM))
async def forget(
    services: Serving,
    caller: Reader,
    memory_id: MemoryId,
    project_id: ProjectId = None,
    session_id: SessionId = None,
) -> Response:
    """Forget a memory; what it had replaced is current again."""
    owner = caller.owner(session_id, project_id)
    memory = await services.memory.store.memories.get(owner, memory_id)
    if memory is None:
        raise not_found("memory")
    require_role(caller, memory.scope)
    if not await services.memory.store.memories.delete(owner, memory_id):
        raise not_found("memory")
    return Response(status_code=204)


def require_role(caller: Caller, scope: MemoryScope) -> None:
    """Problem 403 where the caller's role may not write memories of `scope`."""
    needed = NEEDED.get(scope)
    if needed is None or not caller.role.reaches(needed):
        who = "nobody" if needed is None else f"the role {needed.value}"
        raise Problem(403, "role", f"memories of the scope {scope.value} need {who}")


def capped(caller: Caller, trust: Trust) -> Trust:
    """`trust`, at most `model` below admin."""
    return trust if caller.role.reaches(Role.ADMIN) else min(trust, Trust.MODEL)


def _cursor(memory: Memory) -> str:
    since = memory.created_at - datetime.fromtimestamp(0, UTC)
    micros = (since.days * 86_400 + since.seconds) * _MICROS + since.microseconds
    return encode_cursor(_CURSOR, micros, memory.memory_id)


def _place(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    try:
        micros, memory_id = decode_cursor(_CURSOR, cursor)
        seconds, rest = divmod(int(micros), _MICROS)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest), str(memory_id)
    except (ValueError, TypeError, OverflowError, OSError):
        raise invalid("cursor", "unknown or altered") from None
