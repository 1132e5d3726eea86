"""`/v1/memory/export` and `/import`: a tenant's memories as JSON Lines, streamed and bounded."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Annotated, Any, BinaryIO, cast

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response, StreamingResponse

from muniment.domain.owner import MemoryOwner
from muniment.domain.trust import Trust
from muniment.server.bodies import StrictRoute
from muniment.server.identity import Admin
from muniment.server.pipe import Pipe
from muniment.server.problems import Problem
from muniment.server.routes.documented import SIGNED, problems
from muniment.server.services import Serving
from muniment.server.values import Identifier

router = APIRouter(route_class=StrictRoute, prefix="/v1/memory", tags=["governance"])

IMPORT_PATH = "/v1/memory/import"
MEDIA_TYPE = "application/x-ndjson"
MOST_IMPORT_BYTES = 64 << 20
_ONE_AT_A_TIME = asyncio.Semaphore(1)
_LINES: dict[str, Any] = {MEDIA_TYPE: {"schema": {"type": "string"}}}


class _UnderWay:
    """The tenants that do something which holds much: each once, and at most so many."""

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self._tenants: set[str] = set()

    def enter(self, tenant: str) -> None:
        """Begin; Problem 503 where the tenant has begun already, or too many have."""
        if tenant in self._tenants or len(self._tenants) >= self._most:
            said = f"another {self._what} is under way"
            raise Problem(503, f"{self._what}ing", said, retry_after=5)
        self._tenants.add(tenant)

    def leave(self, tenant: str) -> None:
        """It has ended."""
        self._tenants.discard(tenant)


_IMPORTS, _EXPORTS = _UnderWay("import", 8), _UnderWay("export", 2)


class ExportRequest(BaseModel):
    """What to export: the whole tenant, one of its users, or a user's session; with
    `conversations` their sessions and messages too."""

    model_config = ConfigDict(extra="forbid")
    user_id: Identifier | None = None
    session_id: Identifier | None = None
    conversations: bool = False


class Imported(BaseModel):
    """What an import did; `sessions` and `messages` are those that are new."""

    imported: int
    skipped_duplicates: int
    dropped_links: int
    sessions: int
    messages: int


@router.post(
    "/export",
    name="export_memories",
    response_class=Response,
    responses={200: {"content": _LINES}, **problems(*SIGNED)},
)
async def export(services: Serving, caller: Admin, body: ExportRequest) -> Response:
    """Every memory of the selection as JSON Lines, after a header, as of one instant; then,
    where they are asked for, sessions and messages."""
    whose = MemoryOwner(caller.tenant, user_id=body.user_id, session_id=body.session_id)
    _EXPORTS.enter(caller.tenant)  # whoever takes one slowly keeps a reader of the store for it
    pipe = Pipe()
    stream = cast(BinaryIO, pipe)
    entries = services.memory.store.entries
    writer = services.runs.start(
        entries.export_stream(whose, stream, include_conversations=body.conversations)
    )
    writer.add_done_callback(lambda _: _EXPORTS.leave(caller.tenant))
    chunks = pipe.chunks(writer)
    first = await anext(chunks)  # an export that fails at once is an error and no empty file
    return StreamingResponse(_with(first, chunks), media_type=MEDIA_TYPE)


@router.post(
    "/import",
    name="import_memories",
    responses=problems(*SIGNED, 507),
    openapi_extra={"requestBody": {"required": True, "content": _LINES}},
)
async def import_(
    services: Serving,
    caller: Admin,
    request: Request,
    user_id: Annotated[Identifier | None, Query()] = None,
    max_trust: Trust = Trust.UNTRUSTED,
    rescope: bool = False,
    skip_duplicates: bool = True,
    conversations: bool = False,
) -> Imported:
    """Store an export's memories, all or none, under new ids. `rescope` moves a file of another
    tenant into this one; without it everything must belong to the selection already.
    `conversations` admits sessions and messages, which join those that are there."""
    _IMPORTS.enter(caller.tenant)
    try:
        body = await _body(request)
        async with _ONE_AT_A_TIME:  # once it is here: who sends it slowly keeps nobody waiting
            done = await services.memory.store.entries.import_stream(
                MemoryOwner(caller.tenant, user_id=user_id),
                body,
                max_trust=max_trust,
                rescope=rescope,
                skip_duplicates=skip_duplicates,
                include_conversations=conversations,
            )
    finally:
        _IMPORTS.leave(caller.tenant)
    return Imported(
        imported=done.imported,
        skipped_duplicates=done.skipped_duplicates,
        dropped_links=done.dropped_links,
        sessions=done.sessions,
        messages=done.messages,
    )


async def _body(request: Request) -> BinaryIO:
    """The body in memory, since a file of it would leave bytes behind that no erasure reaches."""
    body = io.BytesIO()
    async for part in request.stream():
        body.write(part)
        if body.tell() > MOST_IMPORT_BYTES:
            said = f"the body must have at most {MOST_IMPORT_BYTES} bytes"
            raise Problem(413, "body", said)
    body.seek(0)
    return body


async def _with(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in rest:
        yield part
