"""Packed images of audiences, kept while they are used and refreshed by their version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TypeVar

from muniment.domain.visibility import is_message_audience
from muniment.evidence.corpus import MESSAGE, Columns, Corpus
from muniment.stores.kept import Kept
from muniment.stores.postgres.audiences import Audience
from muniment.stores.postgres.image import Image, computed, seconds
from muniment.stores.postgres.realm_images import RealmImages, memory_columns
from muniment.stores.postgres.session import Row, Session

Answer = TypeVar("Answer")

DEFAULT_BUDGET_BYTES = 512 << 20

_PAGE = 4_000
_LAST = (1 << 63) - 1


@dataclass(slots=True)
class _Image(Image):
    """One audience's rows up to a version, and up to a row's number within it."""

    upto: tuple[int, int] = (-1, 0)
    removals: int = 0


class Images:
    """The images of a store, least recently used first out when over the budget (bytes)."""

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._kept: Kept[int, _Image] = Kept(_Image, budget_bytes)
        self.realms = RealmImages(budget_bytes)

    async def scored(
        self,
        session: Session,
        audiences: Sequence[Audience],
        work: Callable[[list[Corpus]], Answer],
    ) -> Answer:
        """What `work` makes of the corpora, each no older than its audience's row."""
        held = [(audience, self._kept.image(audience.id)) for audience in audiences]
        for audience, image in held:
            async with image.refreshing:  # several callers load a cold image once
                if image.upto < (audience.version, _LAST):
                    await _refresh(session, audience, image)
                    self._kept.fit(audience.id)
        return await computed([image for _, image in held], work)

    def drop(self) -> None:
        """Forget every image."""
        self._kept.drop()
        self.realms.drop()

    def forget(self, tenant: str, audience_ids: Iterable[int]) -> None:
        """Forget a tenant's images that hold these audiences: what was erased stays in none."""
        self._kept.forget(audience_ids)
        self.realms.forget(tenant)


async def _refresh(session: Session, audience: Audience, image: _Image) -> None:
    """Bring an image up to its audience's version, page by page.

    Where the time is up before the end, the next call goes on from there.
    """
    messages = is_message_audience(audience.key)
    kind = "message" if messages else "memory"
    columns = _message_columns if messages else memory_columns
    place = {"place": audience.place, "audience": audience.id, "limit": _PAGE}
    live: set[int] | None = None
    if len(image.corpus) and image.removals != audience.removals:
        live = {row[0] for row in await session.all(f"{kind}_keys", place)}
    full = True
    while full:
        version, seq = image.upto
        page = await session.all(f"{kind}_changed", {**place, "version": version, "seq": seq})
        apply = partial(_apply, live=live, changed=page, columns=columns)
        await image.change(len(page), apply)
        live, image.removals = None, audience.removals
        full = len(page) == _PAGE
        image.upto = (page[-1][-1], page[-1][0]) if full else (audience.version, _LAST)


def _apply(
    corpus: Corpus,
    live: set[int] | None,
    changed: list[Row],
    columns: Callable[[list[Row]], Columns],
) -> None:
    if live is not None:
        corpus.remove(set(corpus.keys.view[corpus.alive.view].tolist()) - live)
    if changed:
        corpus.put(columns(changed))


def _message_columns(rows: list[Row]) -> Columns:
    """Messages as ranking reads them; there is at least one."""
    seq, session, role, created, terms, marks, length, vector, _ = zip(*rows, strict=True)
    return Columns(
        key=seq,
        kind=[MESSAGE] * len(rows),
        terms=terms,
        marks=marks,
        length=length,
        at=seconds(created, -inf),
        order=seq,
        session=session,
        role=role,
        vector=vector,
    )
