"""Packed images of audiences, kept while they are used and refreshed by their version."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import apsw

from muniment.domain.visibility import is_message_audience
from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.lexical.indexing import IndexedText
from muniment.stores.kept import BYTES_AN_IMAGE, Kept
from muniment.stores.rows import Row
from muniment.stores.sqlite.realm_images import RealmImages, memory_corpus_row
from muniment.stores.sqlite.statements import SQL

_MICROS = 1_000_000
_encode = json.JSONEncoder(ensure_ascii=False).encode
DEFAULT_BUDGET_BYTES = 512 << 20


@dataclass(slots=True)
class Image:
    """One audience's corpus as of a version."""

    corpus: Corpus = field(default_factory=Corpus)
    version: int = -1
    removals: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.corpus.nbytes + BYTES_AN_IMAGE


@dataclass(frozen=True, slots=True)
class Audience:
    """An audience's row."""

    id: int
    key: str
    version: int
    removals: int


def audiences_of(connection: apsw.Connection, keys: Sequence[str]) -> list[Audience]:
    """The rows of `keys` that exist, in the order given."""
    place = {key: index for index, key in enumerate(keys)}
    found = [Audience(*row) for row in connection.execute(SQL["audiences"], (json_list(keys),))]
    return sorted(found, key=lambda audience: place[audience.key])


def json_list(values: Sequence[str | int]) -> str:
    """A list for `json_each`."""
    return _encode(list(values))


class Images:
    """The images of a file, least recently used first out when over the budget (bytes)."""

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._kept: Kept[int, Image] = Kept(Image, budget_bytes)
        self.realms = RealmImages(budget_bytes)

    @contextmanager
    def current(
        self, connection: apsw.Connection, audiences: Sequence[Audience]
    ) -> Iterator[list[Corpus]]:
        """The corpora of `audiences`, locked, and no older than the connection's snapshot."""
        held = [(audience, self._kept.image(audience.id)) for audience in audiences]
        with ExitStack() as locks:
            for _, image in sorted(held, key=lambda pair: pair[0].id):
                locks.enter_context(image.lock)
            for audience, image in held:
                if image.version < audience.version:
                    _refresh(connection, audience, image)
                    self._kept.fit(audience.id)
            yield [image.corpus for _, image in held]

    def drop(self) -> None:
        """Forget every image."""
        self._kept.drop()
        self.realms.drop()

    def forget(self, tenant: str, audience_ids: Iterable[int]) -> None:
        """Forget a tenant's images that hold these audiences: what was erased stays in none."""
        self._kept.forget(audience_ids)
        self.realms.forget(tenant)


def _refresh(connection: apsw.Connection, audience: Audience, image: Image) -> None:
    messages = is_message_audience(audience.key)
    kind = "message" if messages else "memory"
    if image.version >= 0 and image.removals != audience.removals:
        live = {row[0] for row in connection.execute(SQL[f"{kind}_keys"], (audience.id,))}
        known = image.corpus.keys.view[image.corpus.alive.view]
        image.corpus.remove([int(key) for key in known if int(key) not in live])
    changed = connection.execute(SQL[f"{kind}_changed"], (audience.id, image.version))
    make = _message_corpus_row if messages else memory_corpus_row
    image.corpus.upsert([make(row) for row in changed])
    image.version, image.removals = audience.version, audience.removals


def _message_corpus_row(row: Row) -> CorpusRow:
    seq, session, role, created, terms, marks, length, vector = row
    return CorpusRow(
        key=seq,
        kind=MESSAGE,
        indexed=IndexedText(terms, marks, length),
        at=created / _MICROS,
        order=seq,
        session=session,
        role=role,
        vector=vector,
    )
