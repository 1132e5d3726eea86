"""What every store offers by realm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.trust import Trust
from muniment.stores.entries import (
    DEFAULT_IMPORTANCE,
    DEFAULT_KIND,
    DEFAULT_SOURCE,
    MemoryEntry,
    SearchHit,
)
from muniment.stores.transfer import MAX_BYTES, MAX_ENTRIES, ImportResult


class Entries(Protocol):
    """The realm face. A realm is a Scope, or an owner; every query filters by it.

    ScopeError for a malformed realm, InvalidEntryError for what breaks a rule (nothing is stored
    then), NotFoundError for an id that the realm does not cover.
    """

    async def add(
        self,
        scope: Scope | MemoryOwner,
        text: str,
        *,
        kind: MemoryType | str = DEFAULT_KIND,
        trust: Trust | str = Trust.UNTRUSTED,
        source: str = DEFAULT_SOURCE,
        importance: float = DEFAULT_IMPORTANCE,
        expires_at: datetime | None = None,
        derived_from: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> MemoryEntry:
        """Store an entry under a new id."""
        ...

    async def get(self, scope: Scope | MemoryOwner, entry_id: str) -> MemoryEntry: ...

    async def search(
        self,
        scope: Scope | MemoryOwner,
        query: str,
        *,
        k: int = 5,
        kinds: Sequence[MemoryType | str] | None = None,
        min_trust: Trust | str | None = None,
        include_superseded: bool = False,
        include_expired: bool = False,
        max_tokens: int | None = None,
    ) -> list[SearchHit]:
        """Best first, ranked over the realm's rows alone."""
        ...

    async def supersede(
        self,
        scope: Scope | MemoryOwner,
        entry_id: str,
        text: str,
        *,
        kind: MemoryType | str | None = None,
        source: str = DEFAULT_SOURCE,
        trust: Trust | str = Trust.UNTRUSTED,
        importance: float | None = None,
        expires_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> MemoryEntry:
        """Store what takes an entry's place; what is None stays as it was."""
        ...

    async def forget(self, scope: Scope | MemoryOwner, ids: Iterable[str]) -> int: ...

    async def history(
        self, scope: Scope | MemoryOwner, entry_id: str
    ) -> tuple[MemoryEntry, ...]: ...

    def export(self, scope: Scope | MemoryOwner) -> AsyncIterator[dict[str, Any]]:
        """Every entry as plain JSON values, in order of arrival."""
        ...


class Transfers(Entries, Protocol):
    """A realm face that exports and imports files; see `transfer_files.FileTransfers`."""

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
        """All or none of a file; see `muniment.stores.transfer_files.FileTransfers`."""
        ...

    async def export_stream(
        self, scope: Scope | MemoryOwner, stream: BinaryIO, *, include_conversations: bool = False
    ) -> int: ...

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
    ) -> ImportResult: ...

    async def export_file(
        self, scope: Scope | MemoryOwner, path: str | Path, *, include_conversations: bool = False
    ) -> int: ...
