"""`sessions`: a user's conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import assigning, options
from muniment.cli.consent import ask
from muniment.cli.exits import Failed
from muniment.cli.identity import conversation_of
from muniment.cli.output import console, counted, minute, print_json, say, table
from muniment.cli.records import conversation_record, message_record
from muniment.cli.running import with_memory
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationPage,
    normalize_conversation_title,
)

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="List, show, rename, delete and assign conversations.",
)

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]
_PAGE = 500


@app.command("list")
def list_sessions(
    limit: Annotated[int, typer.Option(min=1, max=100, help="At most so many.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(help="Go on from the cursor that the last page gave.")
    ] = None,
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """List a user's conversations, the newest activity first."""
    owner = conversation_of(tenant, user, "any")
    page = with_memory(
        url,
        lambda memory: memory.conversations.list_conversations(
            tenant_id=owner.tenant_id, user_id=owner.user_id, cursor=cursor, limit=limit
        ),
    )
    if as_json:
        rows = [conversation_record(row) for row in page.conversations]
        print_json({"sessions": rows, "next_cursor": page.next_cursor})
    else:
        _print_page(page)


def _print_page(page: ConversationPage) -> None:
    out = console()
    if not page.conversations:
        say(out, "no sessions")
        return
    table(
        out,
        ("SESSION", "ACTIVE", "MESSAGES", "TITLE"),
        [
            (row.session_id, minute(row.updated_at), str(row.message_count), row.title or "-")
            for row in page.conversations
        ],
    )
    if page.next_cursor is not None:
        out.print(f"more: --cursor {page.next_cursor}", soft_wrap=True)


@app.command()
def show(
    session: SessionId,
    limit: options.Limit = 50,
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Show the newest messages of a conversation, oldest first."""
    identity = conversation_of(tenant, user, session)

    async def read(memory: OpenMemory) -> tuple[str | None, tuple[ConversationMessage, ...]]:
        await _require(memory, identity)
        title = await memory.conversations.get_title(identity)
        found = await memory.conversations.recent_messages(identity, limit=limit)
        return title, tuple(found)

    title, messages = with_memory(url, read)
    if as_json:
        records = [message_record(message) for message in messages]
        print_json({"session_id": session, "title": title, "messages": records})
        return
    out = console()
    say(out, title or session, style="bold")
    for message in messages:
        speaker = message.name or message.role.value
        say(out, f"{minute(message.created_at)}  {speaker}: {message.content}")


@app.command()
def rename(
    session: SessionId,
    title: Annotated[
        str, typer.Argument(metavar="TITLE", help="The new title; an empty one clears it.")
    ],
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Give a conversation a title of your own."""
    identity = conversation_of(tenant, user, session)
    wanted = normalize_conversation_title(title)
    done = with_memory(
        url, lambda memory: memory.conversations.rename_conversation(identity, title=wanted)
    )
    if not done:
        raise Failed("no such session")
    if as_json:
        print_json({"session_id": session, "title": wanted})
    else:
        say(console(), f"renamed {session}" if wanted else f"cleared the title of {session}")


@app.command()
def delete(
    session: SessionId,
    yes: options.Yes = False,
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Delete a conversation: its messages, its summary and what was noted in it alone.

    The user's other memories stay.
    """
    identity = conversation_of(tenant, user, session)

    async def work(memory: OpenMemory) -> int:
        await _require(memory, identity)
        messages = await _count(memory, identity)
        held = counted(messages, "message", "messages")
        deed = f"delete session {session} of user {identity.user_id}: {held}"
        ask(deed, yes=yes)
        if not await memory.conversations.delete(identity):
            raise Failed("no such session")
        return messages

    messages = with_memory(url, work)
    if as_json:
        print_json({"session_id": session, "deleted": True, "messages": messages})
    else:
        say(console(), f"deleted {session}: {counted(messages, 'message', 'messages')}")


async def _require(memory: OpenMemory, identity: ConversationIdentity) -> None:
    if not await memory.conversations.exists(identity):
        raise Failed("no such session")


async def _count(memory: OpenMemory, identity: ConversationIdentity) -> int:
    count, last = 0, None
    while True:
        page = await memory.conversations.messages_after(
            identity, after_message_id=last, limit=_PAGE
        )
        count += len(page)
        if len(page) < _PAGE:
            return count
        last = page[-1].message_id


app.command()(assigning.assign)
