"""Rebuilding the index of stored rows: their words and their vectors, in bounded batches."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from muniment.domain.realm import RealmKey
from muniment.lexical.indexing import index_text
from muniment.stores.recalled import spoken
from muniment.stores.rows import Row
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.realms import parts_of
from muniment.stores.sqlite.statements import SQL

_BATCH = 256


async def reindex(core: Core, realm: RealmKey | None) -> int:
    """Rebuild what `realm` covers, None for all; each batch is one transaction.

    Rebuilding all makes the store's embedder the file's embedder. Without an embedder the
    vectors stay as they are.
    """
    if realm is None and core.embedder.present:
        await core.change(lambda change: core.forget_model(change.db))
    done = [await _reindex_kind(core, kind, realm) for kind in ("memory", "message")]
    if realm is None:
        core.reindexing = False
    core.images.drop()
    return sum(done)


async def _reindex_kind(core: Core, kind: str, realm: RealmKey | None) -> int:
    after = done = 0
    keep = realm is not None or not core.embedder.present
    while rows := await core.engine.read_async(_texts(kind, realm, after)):
        vectors = await core.embedder.many([spoken(row[3], row[4]) for row in rows])
        await core.change(_write(core, kind, rows, vectors, keep=keep))
        after, done = rows[-1][0], done + len(rows)
    return done


def _texts(kind: str, realm: RealmKey | None, after: int) -> Callable[[apsw.Connection], list[Row]]:
    values = {**parts_of(realm), "after": after, "limit": _BATCH}
    return lambda db: list(db.execute(SQL[f"{kind}_texts"], values))


def _write(
    core: Core, kind: str, rows: list[Row], vectors: list[bytes | None], *, keep: bool
) -> Callable[[Change], None]:
    index = [index_text(row[3], name=row[4]) for row in rows]

    def job(change: Change) -> None:
        db = change.db
        admitted = core.admit(db, vectors)
        versions = {row[1]: _touch(db, row[1]) for row in rows}
        for (seq, audience, changed, *_), text, vector in zip(rows, index, admitted, strict=True):
            # A row that changed meanwhile was indexed by that change.
            values = (text.terms, text.marks, text.length, vector, versions[audience], keep)
            db.execute(SQL[f"reindex_{kind}"], (seq, changed, *values))

    return job


def _touch(db: apsw.Connection, audience: int) -> int:
    row = db.execute(SQL["touch_audience_id"], (audience,)).fetchone()
    return 0 if row is None else int(row[0])
