"""Packed images of realms, for searches by realm: kept while used, refreshed by what changed."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

from muniment.domain.realm import RealmKey
from muniment.evidence.corpus import Corpus, CorpusRow
from muniment.lexical.indexing import IndexedText
from muniment.stores.postgres.realms import parts_of
from muniment.stores.postgres.session import Row, Session
from muniment.stores.postgres.vectors import packed_of

Answer = TypeVar("Answer")

BYTES_A_ROW = 2_048  # 384 floats and a short text's terms, about
_MICROS = 1_000_000
_NEVER = -1


@dataclass(slots=True)
class _Part:
    """What an image holds of one audience: the rows' numbers, as of a version."""

    version: int = _NEVER
    removals: int = 0
    keys: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class _Image:
    """One realm's corpus. `stamp` changes with every change of what the realm may hold."""

    corpus: Corpus = field(default_factory=Corpus)
    parts: dict[int, _Part] = field(default_factory=dict[int, _Part])
    stamp: Row | None = None
    refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class _News:
    """What a refresh found of one audience: rows that came, and those that are left, if asked."""

    audience: int
    version: int
    removals: int
    changed: list[Row]
    live: set[int] | None


class RealmImages:
    """The images of a store's realms, least recently used first out when over the budget (bytes).

    An image holds the realm's own rows alone, so that neither the cost of a search nor what its
    scores are made from depends on anybody else's.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._images: OrderedDict[RealmKey, _Image] = OrderedDict()

    async def scored(
        self, session: Session, realm: RealmKey, work: Callable[[Corpus], Answer]
    ) -> Answer:
        """What `work` makes of the realm's corpus, no older than this call; in a thread."""
        image = self._images.setdefault(realm, _Image())
        self._images.move_to_end(realm)
        async with image.refreshing:
            await _refresh(session, realm, image)
        answer = await asyncio.to_thread(_locked, image, work)
        self._evict()
        return answer

    def drop(self) -> None:
        """Forget every image."""
        self._images.clear()

    def forget(self, tenant: str) -> None:
        """Forget a tenant's images."""
        for realm in [realm for realm in self._images if realm.tenant == tenant]:
            del self._images[realm]

    def _evict(self) -> None:
        size = sum(len(image.corpus) + 1 for image in self._images.values()) * BYTES_A_ROW
        while size > self._budget and len(self._images) > 1:
            _, image = self._images.popitem(last=False)
            size -= (len(image.corpus) + 1) * BYTES_A_ROW


def _locked(image: _Image, work: Callable[[Corpus], Answer]) -> Answer:
    with image.reading:
        return work(image.corpus)


async def _refresh(session: Session, realm: RealmKey, image: _Image) -> None:
    parts = parts_of(realm)
    stamp = await session.one("realm_stamp", parts)
    if stamp == image.stamp:
        return
    held = await session.all("realm_audiences", parts)
    news: list[_News] = []
    for audience, version, removals in held:
        part = image.parts.get(audience) or _Part()
        if version > part.version:
            news.append(await _read(session, parts, part, (audience, version, removals)))
    present = {row[0] for row in held}
    await asyncio.to_thread(_apply, image, present, news)
    image.stamp = stamp


async def _read(session: Session, parts: dict[str, Any], part: _Part, row: Row) -> _News:
    audience, version, removals = row
    ask = {**parts, "audience": audience, "changed": part.version}
    live: set[int] | None = None
    if part.version != _NEVER and removals != part.removals:
        live = {found[0] for found in await session.all("realm_keys", ask)}
    return _News(audience, version, removals, await session.all("realm_changed", ask), live)


def _apply(image: _Image, present: set[int], news: list[_News]) -> None:
    with image.reading:
        for audience in image.parts.keys() - present:
            image.corpus.remove(image.parts.pop(audience).keys)
        fresh: list[CorpusRow] = []
        for found in news:
            part = image.parts.setdefault(found.audience, _Part())
            if found.live is not None:
                image.corpus.remove(part.keys - found.live)
                part.keys &= found.live
            added = [memory_corpus_row(row) for row in found.changed]
            part.keys.update(row.key for row in added)
            part.version, part.removals = found.version, found.removals
            fresh += added
        image.corpus.upsert(fresh)


def memory_corpus_row(row: Row) -> CorpusRow:
    """A memory's row as ranking reads it."""
    seq, kind, created, valid_from, invalid_at, expires_at, trust, terms, marks, length, vec = row
    return CorpusRow(
        key=seq,
        kind=kind,
        indexed=IndexedText(terms, marks, length),
        at=created / _MICROS,
        order=seq,
        valid_from=-inf if valid_from is None else valid_from / _MICROS,
        invalid_at=inf if invalid_at is None else invalid_at / _MICROS,
        expires_at=inf if expires_at is None else expires_at / _MICROS,
        trust=trust,
        vector=packed_of(vec),
    )
