"""`import-chats`: conversations from elsewhere become a user's own."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer

from muniment.cli import options
from muniment.cli.exits import BadInput
from muniment.cli.identity import owner_of
from muniment.cli.output import console, counted, print_json, say
from muniment.cli.progress import progress
from muniment.cli.running import with_memory
from muniment.cli.values import choice
from muniment.integrations.chat_files import ChatFormat, opened_chats, read_chats
from muniment.integrations.chat_import import ChatCounts, ChatImport

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

_IN_MEMORY = 8 << 20


def import_chats(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="conversations.json, the archive it came in, or JSON Lines; - is standard input.",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="chatgpt, claude or jsonl; found out by itself.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count, store nothing.")
    ] = False,
    tenant: options.Tenant = options.DEFAULT_TENANT,
    user: options.User = options.DEFAULT_USER,
    session: Annotated[
        str | None,
        typer.Option("--session", help="The session of JSON Lines that name none."),
    ] = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Store the conversations of a ChatGPT or Claude data export, or messages as JSON Lines.

    The file is read whole before anything is stored: a bad one changes nothing. Doing it again
    adds only what is new. Everything in it counts as untrusted, whoever said it.

    A line of JSON Lines has role, content and created_at; it may have session_id, message_id,
    name, title, tool_calls_json, tool_call_id and run_id.
    """
    wanted = None if form is None else choice("--format", ChatFormat, form)
    owner = owner_of(tenant, user, session or "any")
    with _opened(file) as stream:
        survey = _surveyed(stream, wanted, session)
        if not dry_run:
            total = survey.stored

            async def store(memory: OpenMemory) -> ChatCounts:
                chats = read_chats(stream, form=wanted, session=session)
                with progress("Storing the messages", total=total, silent=as_json) as seen:
                    return await ChatImport(memory.conversations, owner).run(chats, seen)

            survey = with_memory(url, store, creates=True)
    if as_json:
        print_json({**_record(survey), "dry_run": dry_run})
    else:
        _print(survey, dry_run)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """The file, or what standard input brings: read twice, so it is put aside."""
    if file == "-":
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as aside:
            shutil.copyfileobj(sys.stdin.buffer, aside)
            aside.seek(0)
            yield cast(BinaryIO, aside)
        return
    path = Path(file)
    if not path.is_file():
        raise BadInput("FILE: is not there, or is no file")
    with opened_chats(path) as stream:
        yield stream


def _surveyed(stream: BinaryIO, form: ChatFormat | None, session: str | None) -> ChatCounts:
    """The counts of a file whose every message would be new; it is as at its start again."""
    counts = ChatCounts()
    for chat in read_chats(stream, form=form, session=session):
        counts.count(chat)
        counts.stored += len(chat.messages)
    stream.seek(0)
    return counts


def _record(counts: ChatCounts) -> dict[str, Any]:
    names = ("conversations", "stored", "known", "changed", "unspoken", "refused")
    return {name: getattr(counts, name) for name in names}


def _print(counts: ChatCounts, dry_run: bool) -> None:
    out = console()
    done = "to store at most" if dry_run else "stored"
    chats = counted(counts.conversations, "conversation", "conversations")
    say(out, f"{chats}, {counted(counts.stored, 'message', 'messages')} {done}")
    reasons = (
        (counts.known, "there already"),
        (counts.changed, "there already with other words, which stay"),
        (counts.unspoken, "left out: said by nobody (tool calls, attachments, hidden parts)"),
        (counts.refused, "left out: no store takes them (a NUL character, over 1 MiB)"),
    )
    for number, reason in reasons:
        if number:
            say(out, f"{number} {reason}", indent=2)
