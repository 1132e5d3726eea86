"""Packed images of audiences, kept while they are used and refreshed by their version."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from muniment.domain.visibility import is_message_audience
from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.lexical.indexing import IndexedText
from muniment.stores.postgres.audiences import Audience
from muniment.stores.postgres.realm_images import BYTES_A_ROW, RealmImages, memory_corpus_row
from muniment.stores.postgres.session import Row, Session
from muniment.stores.postgres.vectors import packed_of

Answer = TypeVar("Answer")

_MICROS = 1_000_000
DEFAULT_BUDGET_BYTES = 512 << 20


@dataclass(slots=True)
class Image:
    """One audience's corpus as of a version."""

    corpus: Corpus = field(default_factory=Corpus)
    version: int = -1
    removals: int = 0
    refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading: threading.Lock = field(default_factory=threading.Lock)


class Images:
    """The images of a store, least recently used first out when over the budget (bytes)."""

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._budget = budget_bytes
        self._images: OrderedDict[int, Image] = OrderedDict()
        self.realms = RealmImages(budget_bytes)

    async def scored(
        self,
        session: Session,
        audiences: Sequence[Audience],
        work: Callable[[list[Corpus]], Answer],
    ) -> Answer:
        """What `work` makes of the corpora, each no older than its audience's row.

        It runs in a thread: scoring computes, and must not hold up the event loop.
        """
        held = [(audience, self._image(audience.id)) for audience in audiences]
        for audience, image in held:
            async with image.refreshing:  # several callers load a cold image once
                if image.version < audience.version:
                    await _refresh(session, audience, image)
        answer = await asyncio.to_thread(_locked, [image for _, image in held], work)
        self._evict()
        return answer

    def drop(self) -> None:
        """Forget every image."""
        self._images.clear()
        self.realms.drop()

    def forget(self, tenant: str, audience_ids: Iterable[int]) -> None:
        """Forget a tenant's images that hold these audiences: what was erased stays in none."""
        for audience_id in audience_ids:
            self._images.pop(audience_id, None)
        self.realms.forget(tenant)

    def _image(self, audience_id: int) -> Image:
        image = self._images.setdefault(audience_id, Image())
        self._images.move_to_end(audience_id)
        return image

    def _evict(self) -> None:
        size = sum(len(image.corpus) for image in self._images.values()) * BYTES_A_ROW
        while size > self._budget and len(self._images) > 1:
            _, image = self._images.popitem(last=False)
            size -= len(image.corpus) * BYTES_A_ROW


def _locked(images: Sequence[Image], work: Callable[[list[Corpus]], Answer]) -> Answer:
    with ExitStack() as locks:
        for image in sorted(images, key=id):  # one order for everybody
            locks.enter_context(image.reading)
        return work([image.corpus for image in images])


async def _refresh(session: Session, audience: Audience, image: Image) -> None:
    messages = is_message_audience(audience.key)
    kind = "message" if messages else "memory"
    place = {"place": audience.place, "audience": audience.id, "version": image.version}
    live: set[int] | None = None
    if image.version >= 0 and image.removals != audience.removals:
        live = {row[0] for row in await session.all(f"{kind}_keys", place)}
    changed = await session.all(f"{kind}_changed", place)
    make = _message_corpus_row if messages else memory_corpus_row
    await asyncio.to_thread(_apply, image, live, changed, make)
    image.version, image.removals = audience.version, audience.removals


def _apply(
    image: Image, live: set[int] | None, changed: list[Row], make: Callable[[Row], CorpusRow]
) -> None:
    with image.reading:
        if live is not None:
            known = image.corpus.keys.view[image.corpus.alive.view]
            image.corpus.remove([int(key) for key in known if int(key) not in live])
        image.corpus.upsert([make(row) for row in changed])


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
        vector=packed_of(vector),
    )
