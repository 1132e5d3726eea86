"""What every store offers as a whole, over all of its faces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Self

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.governance.quotas import Totals
from muniment.governance.usage import Served, Usage, checked_period
from muniment.stores.common import Common
from muniment.stores.erasure import ErasureResult


class Store(ABC):
    """A store in use: opened, asked about realms (a Scope or an owner), and closed."""

    def __init__(self, common: Common) -> None:
        self._common = common

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def count(self, place: Scope | MemoryOwner) -> int:
        """How many memories the realm covers, expired ones until they are swept."""
        return await self._count(realm_key(place))

    async def erase(
        self, place: Scope | MemoryOwner, *, cascade: bool = True, preview: bool = False
    ) -> ErasureResult:
        """Remove everything that the realm covers; what it had replaced elsewhere is current again.

        With `cascade` also what was derived from that alone, wherever it is; False leaves alone
        what is outside the realm. A tenant-wide erasure takes the tenant's served usage along.
        The answer is pending while bytes of it are to be found: in a SQLite file where another
        reader is in the way, in PostgreSQL until its tables are vacuumed (see `compact`).
        With `preview` nothing is removed: the answer counts what would be.
        """
        realm = realm_key(place)
        if preview:
            would = await self._foresee(realm, cascade=cascade)
            return replace(would, receipt=None, pending=False)
        return await self._erase(realm, cascade=cascade)

    async def sweep_expired(self, place: Scope | MemoryOwner) -> int:
        """Remove the realm's memories whose time is over; how many there were.

        What a swept one had replaced stays closed.
        """
        return await self._sweep(realm_key(place))

    async def usage(self, place: Scope | MemoryOwner, period: str | None = None) -> Usage:
        """What the realm has stored, and what its tenant's searches served on one UTC day.

        `period` is YYYY-MM-DD, today by default; ValueError for anything else.
        """
        realm, day = realm_key(place), checked_period(period, self._common.clock())
        stored, served = await self._used(realm, day)
        return Usage(
            entries=stored.entries,
            stored_tokens=stored.tokens,
            period=day,
            searches=served.searches,
            served_entries=served.entries,
            served_tokens=served.tokens,
        )

    def note_served(self, tenant: str, entries: int, tokens: int) -> None:
        """Count one search that gave out so many entries and tokens; a database writes it later."""
        self._common.served.note(tenant, entries, tokens)

    def count_tokens(self, text: str) -> int:
        """What a text costs, by the store's estimator."""
        return self._common.limits.count(text)

    # -- what a store does -------------------------------------------------------------------

    @abstractmethod
    async def open(self, *, reindexing: bool = False) -> Self:
        """The store itself, ready; `reindexing` lets in one that another embedder has filled."""

    @abstractmethod
    async def aclose(self) -> None:
        """Give back whatever is held."""

    @abstractmethod
    async def _count(self, realm: RealmKey) -> int:
        """How many memories the realm covers."""

    @abstractmethod
    async def _foresee(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        """What `_erase` would answer, nothing being changed or recorded."""

    @abstractmethod
    async def _erase(self, realm: RealmKey, *, cascade: bool) -> ErasureResult:
        """Remove what the realm covers, in one change that is recorded."""

    @abstractmethod
    async def _sweep(self, realm: RealmKey) -> int:
        """Remove what has expired, in one change that is recorded."""

    @abstractmethod
    async def _used(self, realm: RealmKey, day: str) -> tuple[Totals, Served]:
        """What the realm has stored now, and what its tenant's searches served on a day."""
