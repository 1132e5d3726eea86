"""`search`, `recall` and `context`: three ways to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli import options
from muniment.cli.identity import needed_session, owner_of
from muniment.cli.output import console, counted, minute, print_json, say, shown
from muniment.cli.recalled import print_legend, print_memories, print_ranked, why
from muniment.cli.records import memory_record, message_record, recalled_record
from muniment.cli.running import with_memory
from muniment.cli.values import choice, instant, text_of
from muniment.context.recall import RecalledMemory
from muniment.context.result import MemoryContext
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.trust import Trust
from muniment.settings import load_settings

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

_TEXT_HELP = "The words or the question; - reads standard input."
Text = Annotated[str, typer.Argument(metavar="TEXT", help=_TEXT_HELP)]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help=_TEXT_HELP)]


def search(
    text: Text,
    limit: options.Limit = 10,
    as_of: options.AsOf = None,
    min_trust: options.MinTrust = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also what no longer holds.")
    ] = False,
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    session: options.Session = None,
    project: options.Project = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Search the stored memories for words. Messages are found by recall."""
    owner = owner_of(tenant, user, session, project)
    query = MemoryQuery(
        owner,
        text=text_of("TEXT", text),
        limit=limit,
        as_of=instant("--as-of", as_of),
        include_invalid=superseded,
        min_trust=_trust(min_trust),
    )
    found = with_memory(url, lambda memory: _searched(memory, owner, query))
    if as_json:
        print_json([memory_record(memory) for memory in found])
    else:
        print_memories(console(), found)
        _say_if_none(found)


async def _searched(
    memory: OpenMemory, owner: MemoryOwner, query: MemoryQuery
) -> tuple[Memory, ...]:
    """What is found; counted like a recall in what the tenant's searches gave out."""
    found = tuple(await memory.manager.search(owner, query))
    store = memory.store
    tokens = sum(store.count_tokens(each.content) for each in found)
    store.note_served(owner.tenant_id, len(found), tokens)
    return found


def recall(
    text: Text,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why each one ranks where it does.")
    ] = False,
    limit: options.Limit = 6,
    as_of: options.AsOf = None,
    min_trust: options.MinTrust = None,
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    session: options.Session = None,
    project: options.Project = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Recall what is worth knowing for a question, best first, messages included."""
    owner = owner_of(tenant, user, session, project)
    question, moment, floor = text_of("TEXT", text), instant("--as-of", as_of), _trust(min_trust)
    found: tuple[RecalledMemory, ...] = with_memory(
        url,
        lambda memory: memory.recall(
            owner,
            question,
            as_of=moment,
            top_k=limit,
            min_trust=floor,
            max_tokens=None,
            explain=True,
        ),
    )
    if as_json:
        ranked = {"ranking": load_settings().ranking} if explain else {}
        print_json([recalled_record(each, explain=explain) | ranked for each in found])
        return
    out = console()
    if not explain:
        print_memories(out, [each.memory for each in found])
    elif found:
        print_ranked(out, found)
        _print_reasons(found)
    _say_if_none(found)


def _print_reasons(found: tuple[RecalledMemory, ...]) -> None:
    out = console()
    say(out)
    print_legend(out)
    say(out, f"ranking: {load_settings().ranking} (MUNIMENT_RANKING)", style="dim")
    for position, each in enumerate(found, start=1):
        first, *rest = why(each)
        say(out, f"{position}. {first}", style="dim", indent=2)
        for line in rest:
            say(out, line, style="dim", indent=5)


def context(
    question: Question,
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    session: options.Session = None,
    project: options.Project = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Show what one turn of a session would get from memory for a question."""
    owner = owner_of(tenant, user, needed_session(session), project)
    asked = text_of("QUESTION", question)
    given = with_memory(url, lambda memory: memory.context(owner, asked))
    if as_json:
        print_json(_context_record(given))
    else:
        _print_context(given)


def _context_record(given: MemoryContext) -> dict[str, Any]:
    return {
        "standalone_query": given.standalone_query,
        "rewritten": given.rewritten,
        "summary": given.summary,
        "summary_written": given.summary_written,
        "messages": [message_record(message) for message in given.messages],
        "recalled": [memory_record(memory) for memory in given.recalled],
        "rendered": given.render(),
    }


def _print_context(given: MemoryContext) -> None:
    out = console()
    say(out, f"asked: {given.standalone_query}", style="bold")
    if given.summary:
        say(out, f"summary: {given.summary}")
    say(out, f"window: {counted(len(given.messages), 'message', 'messages')}")
    for message in given.messages:
        speaker = message.name or message.role.value
        say(out, f"{minute(message.created_at)}  {speaker}: {message.content}", indent=2)
    say(out, f"recalled: {len(given.recalled)}")
    for line in given.render().splitlines():
        say(out, shown(line), indent=2)


def _trust(text: str | None) -> Trust | None:
    return None if text is None else choice("--min-trust", Trust, text)


def _say_if_none(found: tuple[Any, ...]) -> None:
    if not found:
        say(console(), "nothing found")
