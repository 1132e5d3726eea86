"""`add` and `history`: a memory, a message, and how a memory came to be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import options
from muniment.cli.exits import BadInput, Failed
from muniment.cli.identity import conversation_of, needed_session, owner_of
from muniment.cli.output import console, print_json, say
from muniment.cli.recalled import held, spoken
from muniment.cli.records import memory_record, message_record
from muniment.cli.running import with_memory
from muniment.cli.values import choice, instant, text_of
from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.identifiers import new_message_id
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

_MEMORY = "A memory"
_MESSAGE = "A message (with --message)"
_TYPES = (MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.DECISION, MemoryType.EPISODE)
_SCOPES = (MemoryScope.SESSION, MemoryScope.USER, MemoryScope.PROJECT, MemoryScope.TENANT)


@dataclass(frozen=True, slots=True)
class _Fact:
    """What `add` was asked to remember, checked."""

    content: str
    memory_type: MemoryType
    scope: MemoryScope
    trust: Trust
    importance: float
    valid_from: datetime | None
    replaces: str | None


def add(
    text: Annotated[str, typer.Argument(help="What to store; - reads standard input.")],
    memory_type: Annotated[
        str,
        typer.Option(
            "--type", help="fact, preference, decision or episode.", rich_help_panel=_MEMORY
        ),
    ] = "fact",
    scope: Annotated[
        str,
        typer.Option(help="session, user, project or tenant.", rich_help_panel=_MEMORY),
    ] = "user",
    trust: Annotated[
        str, typer.Option(help="untrusted, model or owner.", rich_help_panel=_MEMORY)
    ] = "owner",
    importance: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="From 0 to 1.", rich_help_panel=_MEMORY)
    ] = 0.5,
    valid_from: Annotated[
        str | None,
        typer.Option(help="Since when it holds: ISO 8601.", rich_help_panel=_MEMORY),
    ] = None,
    replaces: Annotated[
        str | None,
        typer.Option(help="The id of the memory that this supersedes.", rich_help_panel=_MEMORY),
    ] = None,
    message: Annotated[
        bool, typer.Option("--message", help="Store a conversation's message instead.")
    ] = False,
    role: Annotated[
        str, typer.Option(help="user, assistant, tool or system.", rich_help_panel=_MESSAGE)
    ] = "user",
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    session: options.Session = None,
    project: options.Project = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Store a memory, or with --message a message of a conversation."""
    content = text_of("TEXT", text)
    if message:
        if replaces is not None or valid_from is not None:
            raise BadInput("--message: takes neither --replaces nor --valid-from")
        _add_message(content, role, tenant, user, needed_session(session), url, as_json)
        return
    fact = _Fact(
        content,
        choice("--type", MemoryType, memory_type, allowed=_TYPES),
        choice("--scope", MemoryScope, scope, allowed=_SCOPES),
        choice("--trust", Trust, trust),
        importance,
        instant("--valid-from", valid_from),
        replaces,
    )
    owner = owner_of(tenant, user, session, project)
    _report(with_memory(url, lambda memory: _remember(memory, owner, fact), creates=True), as_json)


async def _remember(memory: OpenMemory, owner: MemoryOwner, fact: _Fact) -> Memory:
    return await memory.remember(
        owner,
        fact.content,
        memory_type=fact.memory_type,
        scope=fact.scope,
        trust=fact.trust,
        importance=fact.importance,
        valid_from=fact.valid_from,
        replaces=fact.replaces,
        source="cli",
    )


def _report(stored: Memory, as_json: bool) -> None:
    if as_json:
        print_json(memory_record(stored))
    else:
        say(console(), f"stored {stored.memory_id} ({stored.scope.value}, {held(stored)})")


def _add_message(
    content: str,
    role: str,
    tenant: str,
    user: str,
    session: str,
    url: str | None,
    as_json: bool,
) -> None:
    speaker = choice("--role", ConversationRole, role)
    identity = conversation_of(tenant, user, session)
    message = ConversationMessage(new_message_id(), speaker, content, datetime.now(UTC))
    with_memory(
        url,
        lambda memory: memory.conversations.append_messages(identity, [message]),
        creates=True,
    )
    if as_json:
        print_json(message_record(message))
    else:
        say(console(), f"stored {message.message_id} in session {session}")


def history(
    memory_id: Annotated[str, typer.Argument(help="The id of any memory of the chain.")],
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    session: options.Session = None,
    project: options.Project = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Show how a memory changed: what it superseded and what superseded it, oldest first."""
    owner = owner_of(tenant, user, session, project)
    chain = with_memory(url, lambda memory: memory.history(owner, memory_id))
    if not chain:
        raise Failed("no such memory")
    if as_json:
        print_json([memory_record(memory) for memory in chain])
        return
    out = console()
    for memory in chain:
        say(out, f"{held(memory)}  {memory.trust.value}  {memory.memory_id}")
        say(out, spoken(memory), indent=2)
