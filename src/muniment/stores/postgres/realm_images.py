"""Packed images of realms, for searches by realm: kept while used, refreshed by what changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, TypeVar

from muniment.domain.realm import RealmKey
from muniment.evidence.corpus import Columns, Corpus
from muniment.stores.kept import Kept
from muniment.stores.postgres.image import Image, computed, seconds
from muniment.stores.postgres.realms import parts_of
from muniment.stores.postgres.session import Row, Session

Answer = TypeVar("Answer")

_NEVER = -1


@dataclass(slots=True)
class _Part:
    """What an image holds of one audience: the rows' numbers, as of a version."""

    version: int = _NEVER
    removals: int = 0
    keys: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class _Image(Image):
    """One realm's rows. `stamp` changes with every change of what the realm may hold."""

    parts: dict[int, _Part] = field(default_factory=dict[int, _Part])
    stamp: Row | None = None


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
        self._kept: Kept[RealmKey, _Image] = Kept(_Image, budget_bytes)

    async def scored(
        self, session: Session, realm: RealmKey, work: Callable[[Corpus], Answer]
    ) -> Answer:
        """What `work` makes of the realm's corpus, no older than this call."""
        image = self._kept.image(realm)
        async with image.refreshing:
            if await _refresh(session, realm, image):
                self._kept.fit(realm)
        return await computed([image], lambda corpora: work(corpora[0]))

    def drop(self) -> None:
        """Forget every image."""
        self._kept.drop()

    def forget(self, tenant: str) -> None:
        """Forget a tenant's images."""
        self._kept.forget([realm for realm in self._kept if realm.tenant == tenant])


async def _refresh(session: Session, realm: RealmKey, image: _Image) -> bool:
    """Whether anything had changed."""
    parts = parts_of(realm)
    stamp = await session.one("realm_stamp", parts)
    if stamp == image.stamp:
        return False
    held = await session.all("realm_audiences", parts)
    news: list[_News] = []
    for audience, version, removals in held:
        part = image.parts.get(audience) or _Part()
        if version > part.version:
            news.append(await _read(session, parts, part, (audience, version, removals)))
    present = {row[0] for row in held}
    rows = sum(len(found.changed) for found in news)
    await image.change(rows, partial(_apply, parts=image.parts, present=present, news=news))
    image.stamp = stamp
    return True


async def _read(session: Session, parts: dict[str, Any], part: _Part, row: Row) -> _News:
    audience, version, removals = row
    ask = {**parts, "audience": audience, "changed": part.version}
    live: set[int] | None = None
    if part.version != _NEVER and removals != part.removals:
        live = {found[0] for found in await session.all("realm_keys", ask)}
    return _News(audience, version, removals, await session.all("realm_changed", ask), live)


def _apply(corpus: Corpus, parts: dict[int, _Part], present: set[int], news: list[_News]) -> None:
    for audience in parts.keys() - present:
        corpus.remove(parts.pop(audience).keys)
    for found in news:
        part = parts.setdefault(found.audience, _Part())
        if found.live is not None:
            corpus.remove(part.keys - found.live)
            part.keys &= found.live
        if found.changed:
            fresh = memory_columns(found.changed)
            part.keys.update(fresh.key)
            corpus.put(fresh)
        part.version, part.removals = found.version, found.removals


def memory_columns(rows: list[Row]) -> Columns:
    """Memories as ranking reads them; there is at least one."""
    seq, kind, updated, valid_from, invalid_at, expires_at, trust, importance, *indexed = zip(
        *rows, strict=True
    )
    terms, marks, length, vector, *_ = indexed
    return Columns(
        key=seq,
        kind=kind,
        terms=terms,
        marks=marks,
        length=length,
        at=seconds(updated, -inf),
        order=seq,
        vector=vector,
        valid_from=seconds(valid_from, -inf),
        invalid_at=seconds(invalid_at, inf),
        expires_at=seconds(expires_at, inf),
        trust=trust,
        importance=importance,
    )
