"""What every store offers by realm: arguments are checked here, rows are the store's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.domain.trust import Trust
from muniment.errors import NotFoundError
from muniment.evidence.vectors import unpack_vector
from muniment.stores.common import Common
from muniment.stores.embedding import RowEmbedder, in_words_at_least
from muniment.stores.entries import (
    DEFAULT_IMPORTANCE,
    DEFAULT_KIND,
    DEFAULT_SOURCE,
    MemoryEntry,
    SearchHit,
    checked_entry,
    entry_ids,
    entry_of,
    new_entry,
    replacement,
)
from muniment.stores.entry_search import EntrySearch, entry_search
from muniment.stores.transfer import (
    MAX_BYTES,
    MAX_ENTRIES,
    ImportResult,
    Intake,
    exported,
    intake,
)
from muniment.stores.transfer_files import FileTransfers

Replacing = Callable[[Memory, datetime], tuple[str, Memory]]
"""From the entry replaced and the instant, the audience and the entry that takes its place."""


class Entries(FileTransfers):
    """The realm face. A realm is a Scope, or an owner; every query filters by it.

    ScopeError for a malformed realm, InvalidEntryError for what breaks a rule (nothing is stored
    then), NotFoundError for an id that the realm does not cover.
    """

    def __init__(self, common: Common, embedder: RowEmbedder) -> None:
        self._common = common
        self._embedder = embedder

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
        """Store an entry under a new id; `importance` is 0..1, at most 100 `derived_from` ids."""
        realm = realm_key(scope)
        memory = new_entry(
            realm,
            text,
            kind=kind,
            trust=trust,
            source=source,
            importance=importance,
            now=self._common.clock(),
            expires_at=expires_at,
            derived_from=derived_from,
            metadata=metadata,
        )
        key = checked_entry(memory, self._common.limits.max_text_bytes)
        embedder = self._embedder
        vector = await embedder.one(memory.content) if embedder.present else None
        entry = entry_of(memory, scope if isinstance(scope, Scope) else None)
        await self._insert(realm, key, memory, vector)
        return entry

    async def get(self, scope: Scope | MemoryOwner, entry_id: str) -> MemoryEntry:
        """The entry of this id, expired or not; of several the one of the narrowest scope."""
        return entry_of(await self._entry(realm_key(scope), entry_id))

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
        """The best entries for plain words, at most 50; words past the 32nd are ignored.

        Ranked over the realm's rows alone. `max_tokens` bounds what is returned: an entry that
        does not fit is skipped and the next tried. InvalidEntryError for a query of more than
        1000 bytes.
        """
        realm, limits = realm_key(scope), self._common.limits
        search = entry_search(
            query,
            k=k,
            kinds=kinds,
            min_trust=min_trust,
            include_superseded=include_superseded,
            include_expired=include_expired,
            max_tokens=max_tokens,
            most=limits.max_results,
        )
        if search.hopeless:
            return []
        vector = await self._embedder.one(search.text)
        asked = None if vector is None else unpack_vector(vector).tolist()
        hits = await in_words_at_least(partial(self._hits, realm, search), asked)
        tokens = sum(limits.count(hit.entry.text) for hit in hits)
        self._common.served.note(realm.tenant, len(hits), tokens)
        return hits

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
        """Store what takes an entry's place, in the same realm; the old one is kept and linked.

        What is None stays as it was. InvalidEntryError for an entry that was superseded before.
        """
        realm = realm_key(scope)

        def replacing(old: Memory, now: datetime) -> tuple[str, Memory]:
            new = replacement(
                old,
                text,
                kind=kind,
                source=source,
                trust=trust,
                importance=importance,
                expires_at=expires_at,
                metadata=metadata,
                now=now,
            )
            return checked_entry(new, self._common.limits.max_text_bytes), new

        vector = await self._embedder.one(text) if isinstance(text, str) else None
        return entry_of(await self._replace(realm, entry_id, replacing, vector))

    async def forget(self, scope: Scope | MemoryOwner, ids: Iterable[str]) -> int:
        """Delete entries, at most 1000 ids; how many. What one had replaced is current again."""
        realm, wanted = realm_key(scope), entry_ids(ids)
        return await self._remove(realm, wanted) if wanted else 0

    async def history(self, scope: Scope | MemoryOwner, entry_id: str) -> tuple[MemoryEntry, ...]:
        """The chain of supersessions that the entry is part of, oldest first."""
        found = await self._chain(realm_key(scope), entry_id)
        if not found:
            raise NotFoundError
        return tuple(map(entry_of, found))

    async def export(self, scope: Scope | MemoryOwner) -> AsyncIterator[dict[str, Any]]:
        """Every entry as plain JSON values, superseded and expired ones too, by arrival."""
        realm, after = realm_key(scope), 0
        while page := await self._page(realm, after):
            for _, memory in page:
                yield exported(memory)
            after = page[-1][0]

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
        """Store a file's entries, all or none; see `FileTransfers.import_stream`."""
        taking = intake(
            realm_key(scope),
            max_trust=max_trust,
            rescope=rescope,
            skip_duplicates=skip_duplicates,
            shared=shared,
            include_conversations=include_conversations,
            max_entries=max_entries,
            max_bytes=max_bytes,
            max_text_bytes=self._common.limits.max_text_bytes,
        )
        return await self._take(stream, taking)

    # -- what a store does with its rows -----------------------------------------------------

    @abstractmethod
    async def _insert(
        self, realm: RealmKey, key: str, memory: Memory, vector: bytes | None
    ) -> None:
        """Store a new row in the audience `key`; its sources must be covered by the realm, or
        visible to the memory's owner.
        """

    @abstractmethod
    async def _entry(self, realm: RealmKey, entry_id: str) -> Memory:
        """The covered row of this id, narrowest scope first; NotFoundError without one."""

    @abstractmethod
    async def _hits(
        self, realm: RealmKey, search: EntrySearch, asked: Sequence[float] | None
    ) -> list[SearchHit]:
        """What the realm's rows answer; `asked` is the query's embedding."""

    @abstractmethod
    async def _replace(
        self, realm: RealmKey, entry_id: str, replacing: Replacing, vector: bytes | None
    ) -> Memory:
        """Put what `replacing` makes of the covered row in its place, in one change."""

    @abstractmethod
    async def _remove(self, realm: RealmKey, ids: Sequence[str]) -> int:
        """Delete the covered rows of these ids, in one change; how many."""

    @abstractmethod
    async def _chain(self, realm: RealmKey, entry_id: str) -> tuple[Memory, ...]:
        """The covered rows around one, oldest first; () where it is not covered."""

    @abstractmethod
    async def _page(self, realm: RealmKey, after: int) -> Sequence[tuple[int, Memory]]:
        """The next covered rows with a number above `after`, in order of arrival; () at the end."""

    @abstractmethod
    async def _take(self, stream: BinaryIO, taking: Intake) -> ImportResult:
        """Store what a stream holds, all or none."""
