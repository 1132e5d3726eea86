"""Rebuilding the index of stored rows: their words and their vectors, in bounded batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from muniment.domain.realm import RealmKey
from muniment.lexical.indexing import index_text
from muniment.stores.postgres.core import Core
from muniment.stores.postgres.realms import parts_of
from muniment.stores.postgres.session import Row, Session
from muniment.stores.recalled import spoken

KINDS = ("memory", "message")
_BATCH = 256
_FORGET_SECONDS = 600.0
_START = (0, 0)


async def reindex(
    core: Core, realm: RealmKey | None, progress: Callable[[int], None] | None = None
) -> int:
    """Rebuild what `realm` covers, None for all; each batch is one transaction.

    Rebuilding all makes the store's embedder the database's embedder: vectors of another model
    are gone from the start, so that a run that is interrupted leaves none to be mixed with.
    Without an embedder the vectors stay as they are. `progress` gets the number of rows done.
    """
    tell = progress or (lambda _: None)
    if realm is not None:
        done = await _reindex_realm(core, realm, keep=True, tell=tell)
        core.images.drop()
        return done
    if core.embedder.present:
        await _forget_another_model(core)
    done, tenant = 0, ""
    while following := await _next_tenant(core, tenant):
        tenant = following
        done += await _reindex_realm(
            core,
            RealmKey(tenant),
            keep=not core.embedder.present,
            tell=partial(_told, tell, done),
        )
    core.reindexing = False
    core.images.drop()
    return done


async def _forget_another_model(core: Core) -> None:
    probe = await core.embedder.one("a probe")
    if await core.read("", lambda session: core.is_of_this_model(session, probe)):
        return
    await core.write("", lambda session: session.run("forget_model", {}))
    tenant = ""
    while following := await _next_tenant(core, tenant):
        tenant = following
        for kind in KINDS:
            await core.write(tenant, partial(_forget_vectors, kind=kind), seconds=_FORGET_SECONDS)


async def _forget_vectors(session: Session, kind: str) -> int:
    return await session.run(f"forget_{kind}_vectors", {})


def _told(tell: Callable[[int], None], before: int, done: int) -> None:
    tell(before + done)


async def _next_tenant(core: Core, after: str) -> str | None:
    row = await core.read("", lambda session: session.one("next_tenant", {"after": after}))
    return None if row is None else row[0]


async def _reindex_realm(
    core: Core, realm: RealmKey, *, keep: bool, tell: Callable[[int], None]
) -> int:
    done = 0
    for kind in KINDS:
        place: tuple[int, int] = _START
        while rows := await _texts(core, kind, realm, place):
            vectors = await core.embedder.many([spoken(row[3], row[4]) for row in rows])
            await _write(core, kind, realm.tenant, rows, vectors, keep=keep)
            place, done = rows[-1][:2], done + len(rows)
            tell(done)
    return done


async def _texts(core: Core, kind: str, realm: RealmKey, place: tuple[int, int]) -> list[Row]:
    values: dict[str, Any] = {**parts_of(realm), "audience": place[0], "after": place[1]}
    values["limit"] = _BATCH
    return await core.read(realm.tenant, lambda session: session.all(f"{kind}_texts", values))


async def _write(
    core: Core,
    kind: str,
    tenant: str,
    rows: Sequence[Row],
    vectors: Sequence[bytes | None],
    *,
    keep: bool,
) -> None:
    index = [index_text(row[3], name=row[4]) for row in rows]

    async def job(session: Session) -> None:
        admitted = await core.admit(session, vectors)
        versions: dict[int, int] = {}
        for audience in sorted({row[0] for row in rows}):
            touched = await session.one("touch_audience_id", {"audience": audience})
            versions[audience] = 0 if touched is None else touched[0]
        # A row that changed meanwhile was indexed by that change.
        await session.run_many(f"reindex_{kind}", [
            {
                "audience": audience, "seq": seq, "changed": changed, "keep": keep,
                "terms": text.terms, "marks": text.marks, "length": text.length,
                "vector": vector, "version": versions[audience],
            }
            for (audience, seq, changed, *_), text, vector in zip(
                rows, index, admitted, strict=True
            )
        ])  # fmt: skip

    await core.write(tenant, job)
