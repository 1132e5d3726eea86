"""Packed images of realms, for searches by realm: kept while used, refreshed by what changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any

import apsw

from muniment.domain.realm import RealmKey
from muniment.evidence.corpus import Corpus, CorpusRow
from muniment.lexical.indexing import IndexedText
from muniment.stores.kept import BYTES_AN_IMAGE, Kept
from muniment.stores.rows import Row
from muniment.stores.sqlite.statements import covered

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
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.corpus.nbytes + BYTES_AN_IMAGE


class RealmImages:
    """The images of a file's realms, least recently used first out when over the budget (bytes).

    An image holds the realm's own rows alone, so that neither the cost of a search nor what its
    scores are made from depends on anybody else's.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._kept: Kept[RealmKey, _Image] = Kept(_Image, budget_bytes)

    @contextmanager
    def current(self, connection: apsw.Connection, realm: RealmKey) -> Iterator[Corpus]:
        """The realm's corpus, locked, and no older than the connection's snapshot."""
        image = self._kept.image(realm)
        with image.lock:
            if _refresh(connection, realm, image):
                self._kept.fit(realm)
            yield image.corpus

    def drop(self) -> None:
        """Forget every image."""
        self._kept.drop()

    def forget(self, tenant: str) -> None:
        """Forget the images of a tenant's realms."""
        self._kept.forget([realm for realm in self._kept if realm.tenant == tenant])


def _refresh(connection: apsw.Connection, realm: RealmKey, image: _Image) -> bool:
    """Whether anything had changed."""
    values = {"tenant": realm.tenant, "subject": realm.subject}
    stamp = connection.execute(covered("realm_stamp", realm), values).fetchone()
    if stamp == image.stamp:
        return False
    held: list[Row] = connection.execute(covered("realm_audiences", realm), values).fetchall()
    _drop_parts(image, {row[0] for row in held})
    fresh: list[CorpusRow] = []
    for audience, _, version, removals in held:
        part = image.parts.setdefault(audience, _Part())
        if version > part.version:
            ask = {**_values(realm), "audience": audience, "changed": part.version}
            if part.version != _NEVER and removals != part.removals:
                _drop_removed(connection, realm, image, part, ask)
            rows = connection.execute(covered("realm_changed", realm), ask)
            added = [memory_corpus_row(row) for row in rows]
            part.keys.update(row.key for row in added)
            part.version, part.removals = version, removals
            fresh += added
    image.corpus.upsert(fresh)
    image.stamp = stamp
    return True


def _drop_parts(image: _Image, present: set[int]) -> None:
    """Audiences that are gone; one that an older snapshot does not know yet is read again."""
    for audience in image.parts.keys() - present:
        image.corpus.remove(image.parts.pop(audience).keys)


def _drop_removed(
    connection: apsw.Connection, realm: RealmKey, image: _Image, part: _Part, ask: dict[str, Any]
) -> None:
    live: set[int] = {row[0] for row in connection.execute(covered("realm_keys", realm), ask)}
    image.corpus.remove(part.keys - live)
    part.keys &= live


def _values(realm: RealmKey) -> dict[str, str | None]:
    return {name: getattr(realm, name) for name in ("tenant", "subject", "agent", "session")}


def memory_corpus_row(row: Row) -> CorpusRow:
    seq, kind, updated, valid_from, invalid_at, expires_at, trust, importance, *indexed = row
    terms, marks, length, vector = indexed
    return CorpusRow(
        key=seq,
        kind=kind,
        indexed=IndexedText(terms, marks, length),
        at=updated / _MICROS,
        order=seq,
        valid_from=-inf if valid_from is None else valid_from / _MICROS,
        invalid_at=inf if invalid_at is None else invalid_at / _MICROS,
        expires_at=inf if expires_at is None else expires_at / _MICROS,
        trust=trust,
        vector=vector,
        importance=importance,
    )
