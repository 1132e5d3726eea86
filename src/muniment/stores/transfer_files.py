"""Exports and imports by file, for every store that can do them by stream."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.trust import Trust
from muniment.errors import FileInTheWayError, MemoryStoreError
from muniment.stores.transfer import MAX_BYTES, MAX_ENTRIES, ImportResult


class FileTransfers(ABC):
    """The file verbs of a realm face; a store provides those by stream."""

    @abstractmethod
    async def import_stream(
        self,
        scope: Scope | MemoryOwner,
        stream: BinaryIO,
        *,
        max_trust: Trust | str = Trust.UNTRUSTED,
        rescope: bool = False,
        skip_duplicates: bool = True,
        shared: bool = False,
        include_conversations: bool = False,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
    ) -> ImportResult:
        """Store a file's entries, all or none, each checked like an `add`, under new ids.

        Every entry must lie inside the realm; `rescope` moves the file into its tenant first,
        narrower parts kept. Trust above `max_trust` is lowered to it. What a stored entry of the
        same realm says already is passed over. `shared` admits a user's entries for a project
        or a tenant where the realm is narrower than the tenant; `include_conversations` admits
        sessions and messages, which join those that are there. At most 64 KiB an entry.
        InvalidEntryError names the line, never the text.
        """

    @abstractmethod
    async def export_stream(
        self, scope: Scope | MemoryOwner, stream: BinaryIO, *, include_conversations: bool = False
    ) -> int:
        """Write every entry of the realm as JSON Lines, after a header, as of one instant.

        With `include_conversations` its sessions and their messages follow. Answers the count of
        entries, which the header states too.
        """

    async def import_file(
        self,
        scope: Scope | MemoryOwner,
        path: str | Path,
        *,
        max_trust: Trust | str = Trust.UNTRUSTED,
        rescope: bool = False,
        skip_duplicates: bool = True,
        shared: bool = False,
        include_conversations: bool = False,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
    ) -> ImportResult:
        """`import_stream` of a file; MemoryStoreError where it cannot be read."""
        source = _named(path)
        with _file_errors("read"), open(source, "rb") as stream:  # noqa: ASYNC230 - a local file
            return await self.import_stream(
                scope,
                stream,
                max_trust=max_trust,
                rescope=rescope,
                skip_duplicates=skip_duplicates,
                shared=shared,
                include_conversations=include_conversations,
                max_entries=max_entries,
                max_bytes=max_bytes,
            )

    async def export_file(
        self, scope: Scope | MemoryOwner, path: str | Path, *, include_conversations: bool = False
    ) -> int:
        """`export_stream` to a new file of mode 0600; FileInTheWayError where there is one.

        The file appears under its name once it is complete and on the disk.
        """
        with new_file(path) as stream:
            return await self.export_stream(
                scope, stream, include_conversations=include_conversations
            )


@contextmanager
def new_file(path: str | Path) -> Iterator[BinaryIO]:
    """A stream to what becomes the file `path` at the end of the block, or nothing on an error."""
    target = _named(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    with _file_errors("written"):
        if os.path.lexists(target):
            raise FileInTheWayError("the file exists already; it is not overwritten")
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.link(draft, target)  # unlike a renaming, this never replaces a file
        finally:
            os.unlink(draft)


def _named(path: str | Path) -> Path:
    named = Path(path)
    try:
        if named.name and b"\0" not in os.fsencode(named):
            return named
    except UnicodeEncodeError:
        pass
    raise MemoryStoreError("path: must be the name of a file")


@contextmanager
def _file_errors(done: str) -> Iterator[None]:
    try:
        yield
    except MemoryStoreError:
        raise
    except FileExistsError:
        raise FileInTheWayError("the file exists already; it is not overwritten") from None
    except OSError as error:
        raise MemoryStoreError(f"the file cannot be {done}: {error.strerror}") from None
