"""`sessions assign`: giving a session of the shared identity to a user."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import options
from muniment.cli.consent import ask
from muniment.cli.exits import Failed
from muniment.cli.identity import conversation_of
from muniment.cli.output import console, counted, print_json, say
from muniment.cli.running import with_memory
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

_PAGE = 500
_KINDS = ("chat", "agent")


def assign(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")],
    to: Annotated[str, typer.Option("--to", help="The user that it shall belong to.")],
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    yes: options.Yes = False,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Give a session to another user, by default one of the shared identity.

    Its messages keep their ids, times and order; it counts as active from now. What was noted
    in the session alone goes along, and its summary is made anew. With an audit log both sides
    are recorded. A run that was interrupted goes on when it is repeated.
    """
    old, new = conversation_of(tenant, user, session), conversation_of(tenant, to, session)
    if old == new:
        raise Failed("the session belongs to that user already")
    ask(f"give session {session} of user {old.user_id} to user {new.user_id}", yes=yes)
    messages = with_memory(url, lambda memory: _assigned(memory, old, new))
    if as_json:
        print_json({"session_id": session, "user": to, "messages": messages})
    else:
        held = counted(messages, "message", "messages")
        say(console(), f"session {session} belongs to {to} now: {held}")


async def _assigned(
    memory: OpenMemory, old: ConversationIdentity, new: ConversationIdentity
) -> int:
    conversations = memory.conversations
    if not await conversations.exists(old):
        raise Failed("no such session")
    if await conversations.exists(new) and await _first(memory, old) != await _first(memory, new):
        raise Failed("that user has another session of this id")
    kinds = [kind for kind in _KINDS if await conversations.exists(old, kind=kind)]
    await conversations.create(new, kind=kinds[0] if kinds else _KINDS[0])
    messages = await _copied(memory, old, new)
    title = await conversations.get_title(old)
    if title is not None:
        await conversations.set_generated_title(new, title=title)
    await _move_notes(memory, old, new)
    await conversations.delete(old)
    return messages


async def _move_notes(
    memory: OpenMemory, old: ConversationIdentity, new: ConversationIdentity
) -> None:
    """Store the session's own memories as the new owner's, under their ids; where they were
    derived from stays behind, since that may be the old owner's alone."""
    given = MemoryOwner(old.tenant_id, user_id=old.user_id, session_id=old.session_id)
    query = MemoryQuery(given, scopes=(MemoryScope.SESSION,), include_invalid=True, limit=_PAGE)
    memories, after = memory.store.memories, None
    while page := await memories.page(query, after=after):
        for note in page:
            if note.memory_type is not MemoryType.SUMMARY:
                owner = replace(note.owner, user_id=new.user_id, principal_id=new.principal_id)
                await memories.save(replace(note, owner=owner, derived_from=()))
        after = (page[-1].created_at, page[-1].memory_id)


async def _first(memory: OpenMemory, identity: ConversationIdentity) -> str | None:
    page = await memory.conversations.messages_after(identity, after_message_id=None, limit=1)
    return page[0].message_id if page else None


async def _copied(memory: OpenMemory, old: ConversationIdentity, new: ConversationIdentity) -> int:
    count, after = 0, None
    while page := await _page(memory, old, after):
        await memory.conversations.append_messages(new, page)
        count, after = count + len(page), page[-1].message_id
    return count


async def _page(
    memory: OpenMemory, identity: ConversationIdentity, after: str | None
) -> list[ConversationMessage]:
    return list(
        await memory.conversations.messages_after(identity, after_message_id=after, limit=_PAGE)
    )
