"""`/v1/chat/sessions` and `/v1/agent/sessions`: a caller's conversations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationSummaryRow,
    normalize_conversation_title,
)
from muniment.domain.identifiers import new_session_id
from muniment.domain.owner import MemoryOwner
from muniment.server.bodies import StrictRoute
from muniment.server.completions.lease import SessionLease
from muniment.server.identity import Caller, Reader
from muniment.server.problems import invalid, not_found
from muniment.server.routes.documented import ITEM, SIGNED, problems
from muniment.server.services import Services, Serving
from muniment.stores.recalled import is_searchable

Kind = Literal["chat", "agent"]
SessionId = Annotated[str, Path(min_length=1, max_length=256)]
_Limit = Annotated[int, Query(ge=1, le=100)]
_Cursor = Annotated[str | None, Query(max_length=1000)]


class NewSession(BaseModel):
    """A session to be made."""

    model_config = ConfigDict(extra="forbid")
    title: str | None = None


class Rename(BaseModel):
    """A title; null or blank clears it."""

    model_config = ConfigDict(extra="forbid")
    title: str | None


class SessionRow(BaseModel):
    """One session; `updated_at` is its last activity."""

    session_id: str
    kind: str
    title: str | None
    created_at: datetime
    updated_at: datetime
    message_count: int


class SessionPage(BaseModel):
    """A page of sessions, newest activity first."""

    sessions: list[SessionRow]
    next_cursor: str | None


class NamedSession(BaseModel):
    """A session and its title."""

    session_id: str
    kind: str
    title: str | None


class MessageRow(BaseModel):
    """One message."""

    message_id: str
    role: str
    content: str
    created_at: datetime
    token_count: int | None
    citations: list[dict[str, Any]]
    run_id: str | None
    partial: bool


class MessagePage(BaseModel):
    """A page of messages, oldest first; `next_cursor` goes on as `after`."""

    messages: list[MessageRow]
    next_cursor: str | None


class DeletedSession(BaseModel):
    """What a deletion removed. It claims nothing about user or project memories."""

    session_id: str
    sessions: int
    messages: int
    checkpoints: int
    memories: int
    index_entries: int


def sessions_of(kind: Kind) -> APIRouter:
    """The routes of one kind. The path decides the kind that is listed and made; a session of
    either kind is found by its id."""
    router = APIRouter(route_class=StrictRoute, prefix=f"/v1/{kind}/sessions", tags=["sessions"])

    @router.get("", name=f"list_{kind}_sessions", responses=problems(*SIGNED))
    async def listed(
        services: Serving, caller: Reader, limit: _Limit = 20, cursor: _Cursor = None
    ) -> SessionPage:
        """The caller's sessions of this kind, newest activity first."""
        return await _list(services, caller, kind, limit, cursor)

    @router.post("", name=f"create_{kind}_session", status_code=201, responses=problems(*SIGNED))
    async def created(
        services: Serving, caller: Reader, body: NewSession | None = None
    ) -> NamedSession:
        """A new session; a title given here is the caller's own."""
        return await _create(services, caller, kind, None if body is None else body.title)

    items: list[tuple[str, str, Callable[..., Any], tuple[int, ...]]] = [
        ("GET", "/{session_id}/messages", messages, ITEM),
        ("PATCH", "/{session_id}", rename, ITEM),
        ("DELETE", "/{session_id}", delete, (*ITEM, 409)),
    ]
    for method, path, serve, statuses in items:
        name = f"{serve.__name__}_of_{kind}_session"
        router.add_api_route(
            path, serve, methods=[method], name=name, responses=problems(*statuses)
        )
    return router


async def messages(
    services: Serving,
    caller: Reader,
    session_id: SessionId,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: Annotated[str | None, Query(min_length=1, max_length=256)] = None,
) -> MessagePage:
    """The session's messages, oldest first."""
    identity = await required(services, caller, session_id)
    return await _messages(services, identity, limit, after)


async def rename(
    services: Serving, caller: Reader, session_id: SessionId, body: Rename
) -> NamedSession:
    """A title of the caller's own, which no generated one replaces."""
    title = _title(body.title)
    identity = conversation(caller, session_id)
    if not await services.memory.conversations.rename_conversation(identity, title=title):
        raise not_found()
    return NamedSession(
        session_id=identity.session_id, kind=await _kind(services, identity), title=title
    )


async def _kind(services: Services, identity: ConversationIdentity) -> Kind:
    """How the session was made."""
    chat = await services.memory.conversations.exists(identity, kind="chat")
    return "chat" if chat else "agent"


async def delete(services: Serving, caller: Reader, session_id: SessionId) -> DeletedSession:
    """Remove the session, its messages, and what was remembered of it alone."""
    identity = await required(services, caller, session_id)
    return await _delete(services, identity)


def conversation(caller: Caller, session_id: str) -> ConversationIdentity:
    """The caller's conversation of this id; an id that cannot be one is not there."""
    try:
        return caller.conversation(session_id)
    except ValueError:
        raise not_found() from None


async def required(services: Services, caller: Caller, session_id: str) -> ConversationIdentity:
    """The caller's conversation; Problem 404 where there is none."""
    identity = conversation(caller, session_id)
    if not await services.memory.conversations.exists(identity):
        raise not_found()
    return identity


async def _list(
    services: Services, caller: Caller, kind: Kind, limit: int, cursor: str | None
) -> SessionPage:
    try:
        page = await services.memory.conversations.list_conversations(
            tenant_id=caller.tenant, user_id=caller.user, kind=kind, cursor=cursor, limit=limit
        )
    except ValueError:
        raise invalid("cursor", "unknown or altered") from None
    rows = [_session_row(row) for row in page.conversations]
    return SessionPage(sessions=rows, next_cursor=page.next_cursor)


async def _create(
    services: Services, caller: Caller, kind: Kind, given: str | None
) -> NamedSession:
    title = _title(given)
    identity = caller.conversation(new_session_id())
    await services.memory.conversations.create(identity, kind=kind, title=title)
    return NamedSession(session_id=identity.session_id, kind=kind, title=title)


async def _messages(
    services: Services, identity: ConversationIdentity, limit: int, after: str | None
) -> MessagePage:
    try:
        found = await services.memory.conversations.messages_after(
            identity, after_message_id=after, limit=limit + 1
        )
    except ValueError:
        raise invalid("after", "is not a message of this session") from None
    page = list(found[:limit])
    following = page[-1].message_id if len(found) > limit else None
    return MessagePage(messages=[_message_row(each) for each in page], next_cursor=following)


async def _delete(services: Services, identity: ConversationIdentity) -> DeletedSession:
    """With the session's lease: no completion under way can bring it back."""
    seconds = services.settings.lease_seconds
    lease = SessionLease(services.memory.store.service, identity, seconds=seconds)
    await lease.take()
    try:
        held = await contents(services, identity)
        owner = MemoryOwner(
            identity.tenant_id, user_id=identity.user_id, session_id=identity.session_id
        )
        memories = await services.memory.store.count(owner)
        if not await services.memory.conversations.delete(identity):
            raise not_found()
    finally:
        await lease.give_back()
    return DeletedSession(
        session_id=identity.session_id,
        sessions=1,
        messages=held.messages,
        checkpoints=await forget_runs(services, identity, held.run_ids),
        memories=memories,
        index_entries=held.indexed + memories,
    )


@dataclass(slots=True)
class Contents:
    """What a session holds: messages, those of them that are indexed, and its runs."""

    messages: int = 0
    indexed: int = 0
    run_ids: set[str] = field(default_factory=set[str])


async def contents(services: Services, identity: ConversationIdentity) -> Contents:
    """What the session holds now."""
    found, after = Contents(), None
    while page := await services.memory.conversations.messages_after(
        identity, after_message_id=after, limit=1000
    ):
        found.messages += len(page)
        found.indexed += sum(is_searchable(message) for message in page)
        found.run_ids.update(message.run_id for message in page if message.run_id is not None)
        after = page[-1].message_id
    return found


async def forget_runs(
    services: Services, identity: ConversationIdentity, run_ids: Iterable[str]
) -> int:
    """Delete the checkpoints of a user's runs; how many there were."""
    return 0 if services.agent is None else await services.agent.forget(identity, run_ids)


def _title(title: str | None) -> str | None:
    try:
        return normalize_conversation_title(title)
    except ValueError as error:
        raise invalid(*str(error).split(": ", 1)) from None


def _session_row(row: ConversationSummaryRow) -> SessionRow:
    return SessionRow(
        session_id=row.session_id,
        kind=row.kind,
        title=row.title,
        created_at=row.created_at,
        updated_at=row.updated_at,
        message_count=row.message_count,
    )


def _message_row(message: ConversationMessage) -> MessageRow:
    return MessageRow(
        message_id=message.message_id,
        role=message.role.value,
        content=message.content,
        created_at=message.created_at,
        token_count=message.token_count,
        citations=_citations(message.citations_json),
        run_id=message.run_id,
        partial=message.partial,
    )


def _citations(text: str | None) -> list[dict[str, Any]]:
    """The stored citations; rubbish costs itself, not the page."""
    try:
        value = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
