"""`export` and `import`: memories as a file, and back."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer

from muniment.cli import options
from muniment.cli.exits import BadInput
from muniment.cli.identity import realm_of, realm_words
from muniment.cli.output import console, counted, error_console, print_json, say
from muniment.cli.progress import Advance, progress
from muniment.cli.running import configured_url, not_there_yet, with_store
from muniment.cli.values import choice
from muniment.domain.realm import realm_key
from muniment.domain.trust import Trust
from muniment.stores.transfer import MAX_BYTES, ImportResult, intake
from muniment.stores.transfer_files import new_file
from muniment.stores.transfer_reading import check_lines

if TYPE_CHECKING:
    from muniment.wiring import AsyncStore

_STANDARD = "-"


Conversations = Annotated[
    bool, typer.Option("--conversations", help="Sessions and their messages too.")
]


def export(
    file: Annotated[
        str,
        typer.Argument(metavar="[FILE]", help="A new file; - is standard output."),
    ] = _STANDARD,
    conversations: Conversations = False,
    tenant: options.RealmTenant = options.DEFAULT_TENANT,
    user: options.RealmUser = None,
    agent: options.RealmAgent = None,
    session: options.RealmSession = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Write memories as JSON Lines after a header line: to a new file, or to standard output.

    A file is readable by its owner alone, and an existing one is never overwritten. Superseded
    and expired memories are part of it. With --json and no FILE: one document with all entries.
    """
    realm = realm_of(tenant, user, agent, session)
    if file == _STANDARD and as_json:
        print_json(with_store(url, lambda store: _document(store, realm, conversations)))
        return
    if file != _STANDARD and (Path(file).exists() or Path(file).is_symlink()):
        raise BadInput(
            "FILE: is a folder: name a new file in it"
            if Path(file).is_dir()
            else "FILE: is there already; it is not overwritten"
        )

    async def work(store: AsyncStore) -> int:
        total = await store.count(realm)
        mixed = file == _STANDARD and sys.stdout.isatty()
        with (
            _written(file) as stream,
            progress("Exporting", total=total, silent=as_json or mixed) as seen,
        ):
            counting = cast(BinaryIO, _Counting(stream, seen))
            return await store.entries.export_stream(
                realm, counting, include_conversations=conversations
            )

    count = with_store(url, work)
    if as_json:
        print_json({"file": file, "entries": count})
    else:
        # The export itself may be on standard output.
        out = error_console() if file == _STANDARD else console()
        place = "" if file == _STANDARD else f" to {file}"
        say(
            out,
            f"exported {_memories(count)} of {realm_words(tenant, user, agent, session)}{place}",
        )


def _written(file: str) -> AbstractContextManager[BinaryIO]:
    if file == _STANDARD:
        return nullcontext(cast(BinaryIO, sys.stdout.buffer))
    return new_file(file)


async def _document(store: AsyncStore, realm: Any, conversations: bool) -> dict[str, Any]:
    stream = io.BytesIO()
    count = await store.entries.export_stream(realm, stream, include_conversations=conversations)
    _, *lines = map(json.loads, stream.getvalue().splitlines())
    document: dict[str, Any] = {"count": count, "entries": lines[:count]}
    return {**document, "conversations": lines[count:]} if conversations else document


def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What export wrote; - is standard input.")
    ],
    max_trust: Annotated[
        str, typer.Option("--max-trust", help="Nothing is trusted more: untrusted, model, owner.")
    ] = "untrusted",
    rescope: Annotated[
        bool,
        typer.Option("--rescope", help="Take what is of another tenant into this one."),
    ] = False,
    keep_duplicates: Annotated[
        bool,
        typer.Option("--keep-duplicates", help="Store also what is stored already."),
    ] = False,
    conversations: Conversations = False,
    tenant: options.RealmTenant = options.DEFAULT_TENANT,
    user: options.RealmUser = None,
    agent: options.RealmAgent = None,
    session: options.RealmSession = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Store the memories of an exported file, all or none.

    Each is checked as if it were added; a bad line stops it and is named. Everything must belong
    to what the options select, or --rescope moves it. Ids are always new.
    """
    trust = choice("--max-trust", Trust, max_trust)
    realm = realm_of(tenant, user, agent, session)
    taking: dict[str, Any] = {
        "max_trust": trust, "rescope": rescope, "include_conversations": conversations,
        "skip_duplicates": not keep_duplicates,
    }  # fmt: skip
    with _held(file) as held:
        if not_there_yet(url or configured_url()):  # a file that is no good begins no store
            check_lines(held, intake(realm_key(realm), **taking), now=datetime.now(UTC))

        async def work(store: AsyncStore) -> ImportResult:
            with _watched(held, silent=as_json) as stream:
                return await store.entries.import_stream(realm, stream, **taking)

        result = with_store(url, work, creates=True)
    if as_json:
        print_json(asdict(result))
        return
    out = console()
    words = realm_words(tenant, user, agent, session)
    say(out, f"imported {_memories(result.imported)} into {words}")
    if conversations:
        sessions = counted(result.sessions, "session", "sessions")
        say(out, f"{sessions}, {counted(result.messages, 'message', 'messages')}", indent=2)
    if result.skipped_duplicates:
        say(out, f"{result.skipped_duplicates} stored already", indent=2)
    if result.dropped_links:
        dropped = counted(result.dropped_links, "link", "links")
        say(out, f"{dropped} dropped: to what is not in the file, or of another owner", indent=2)


@contextmanager
def _held(file: str) -> Iterator[BinaryIO]:
    """What can be read twice: the file, or what comes by standard input, one byte beyond the
    limit at the most."""
    if file == _STANDARD:
        yield io.BytesIO(sys.stdin.buffer.read(MAX_BYTES + 1))
        return
    if not Path(file).is_file():
        raise BadInput("FILE: is not there, or is no file")
    with Path(file).open("rb") as stream:
        yield stream


@contextmanager
def _watched(stream: BinaryIO, *, silent: bool) -> Iterator[BinaryIO]:
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    with progress("Importing", total=size, silent=silent) as seen:
        yield cast(BinaryIO, _Watched(stream, seen))


class _Counting(io.RawIOBase):
    """A stream that tells how many lines were written to it after the first."""

    def __init__(self, stream: BinaryIO, seen: Advance) -> None:
        self._stream = stream
        self._seen = seen
        self._lines = -1

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._lines += bytes(data).count(b"\n")
        self._seen(max(0, self._lines))
        return self._stream.write(data)


class _Watched(io.RawIOBase):
    """A stream that tells how much of it was read."""

    def __init__(self, stream: BinaryIO, seen: Advance) -> None:
        self._stream = stream
        self._seen = seen

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._told(self._stream.readline(-1 if size is None else size))

    def read(self, size: int = -1, /) -> bytes:
        return self._told(self._stream.read(size))

    def _told(self, data: bytes) -> bytes:
        self._seen(self._stream.tell())
        return data


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")
