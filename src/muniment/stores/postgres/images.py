"""Packed images of audiences, kept while they are used and refreshed by their version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TypeVar

from muniment.domain.visibility import is_message_audience
from muniment.evidence.corpus import MESSAGE, Columns, Corpus
from muniment.stores.postgres.audiences import Audience
from muniment.stores.postgres.kept import Image, Kept, computed, seconds
from muniment.stores.postgres.realm_images import RealmImages, memory_columns
from muniment.stores.postgres.session import Row, Session

Answer = TypeVar("Answer")

DEFAULT_BUDGET_BYTES = 512 << 20


@dataclass(slots=True)
class _Image(Image):
    """One audience's rows as of a version."""

    version: int = -1
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
                if image.version < audience.version:
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
    messages = is_message_audience(audience.key)
    kind = "message" if messages else "memory"
    place = {"place": audience.place, "audience": audience.id, "version": image.version}
    live: set[int] | None = None
    if image.version >= 0 and image.removals != audience.removals:
        live = {row[0] for row in await session.all(f"{kind}_keys", place)}
    changed = await session.all(f"{kind}_changed", place)
    columns = _message_columns if messages else memory_columns
    await image.change(len(changed), partial(_apply, live=live, changed=changed, columns=columns))
    image.version, image.removals = audience.version, audience.removals


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
    seq, session, role, created, terms, marks, length, vector = zip(*rows, strict=True)
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
