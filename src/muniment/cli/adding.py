"""`add` and `history`: a memory, a message, and how a memory came to be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import options
from muniment.cli.exits import BadInput, Failed
from muniment.cli.identity import conversation_of, needed_session, owner_of
from muniment.cli.output import console, day, print_json, say
from muniment.cli.recalled import held, spoken
from muniment.cli.records import memory_record, message_record
from muniment.cli.running import with_memory
from muniment.cli.values import choice, instant, named, text_of
from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.identifiers import new_memory_id, new_message_id
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.stores.limits import checked_memory

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
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to store; - reads standard input.")
    ],
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
        _refuse(context, _MEMORY, "says something of a memory, and --message stores none")
        _add_message(content, role, tenant, user, needed_session(session), url, as_json)
        return
    _refuse(context, _MESSAGE, "says something of a message: give --message too")
    fact = _Fact(
        content,
        choice("--type", MemoryType, memory_type, allowed=_TYPES),
        choice("--scope", MemoryScope, scope, allowed=_SCOPES),
        choice("--trust", Trust, trust),
        importance,
        instant("--valid-from", valid_from),
        named("--replaces", replaces),
    )
    owner = owner_of(tenant, user, session, project)
    _refuse_unseen(fact.scope, session, project)
    # Looked at before a store is opened: what is refused begins no file.
    checked_memory(Memory(new_memory_id(), fact.scope, fact.memory_type, owner, content))
    _report(with_memory(url, lambda memory: _remember(memory, owner, fact), creates=True), as_json)


def _refuse(context: typer.Context, panel: str, problem: str) -> None:
    """BadInput for an option of `panel` that was typed: it would do nothing."""
    for option in context.command.params:
        name = option.name or ""
        typed = context.get_parameter_source(name)
        of_panel = getattr(option, "rich_help_panel", None) == panel
        if of_panel and typed is not None and typed.name == "COMMANDLINE":
            raise BadInput(f"{option.opts[0]}: {problem}")


def _refuse_unseen(scope: MemoryScope, session: str | None, project: str | None) -> None:
    """BadInput for a scope whose owner is not named in full."""
    needed = {
        MemoryScope.SESSION: ("--session", session),
        MemoryScope.PROJECT: ("--project", project),
    }
    option, value = needed.get(scope, ("", ""))
    if value is None:
        raise BadInput(f"{option}: is needed for --scope {scope.value}")


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
        ends = "" if stored.expires_at is None else f", kept until {day(stored.expires_at)}"
        said = f"{stored.scope.value}, {held(stored)}{ends}"
        say(console(), f"stored {stored.memory_id} ({said})")


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
    memory_id: Annotated[
        str, typer.Argument(metavar="MEMORY_ID", help="The id of any memory of the chain.")
    ],
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
