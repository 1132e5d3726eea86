"""Rebuilding the index of stored rows: their words and their vectors, in bounded batches."""

from __future__ import annotations

import json
from collections.abc import Callable

import apsw

from muniment import __version__
from muniment.domain.realm import RealmKey
from muniment.lexical.indexing import index_text
from muniment.stores.recalled import spoken
from muniment.stores.rows import Row
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.realms import parts_of
from muniment.stores.sqlite.statements import SQL

KINDS = ("memory", "message")
_BATCH = 256
_PLACE = "reindex_place"


async def reindex(
    core: Core, realm: RealmKey | None, progress: Callable[[int], None] | None = None
) -> int:
    """Rebuild what `realm` covers, None for all; each batch is one transaction.

    Rebuilding all makes the store's embedder the file's embedder: vectors of another model are
    gone from the start, so that a run that is interrupted leaves none to be mixed with, and the
    next run goes on behind the last batch. Without an embedder the vectors stay as they are.
    `progress` gets the number of rows done.
    """
    run = _Run(core, realm, progress)
    kind, after = await run.begin() if realm is None else (KINDS[0], 0)
    for each in KINDS[KINDS.index(kind) :]:
        await run.rebuild(each, after if each == kind else 0)
    if realm is None:
        await core.change(lambda change: change.db.execute(SQL["forget_setting"], (_PLACE,)))
        core.reindexing = False
    core.images.drop()
    return run.done


class _Run:
    """One rebuilding."""

    def __init__(
        self, core: Core, realm: RealmKey | None, progress: Callable[[int], None] | None
    ) -> None:
        self._core = core
        self._realm = realm
        self._progress = progress
        self._keep = realm is not None or not core.embedder.present
        self.done = 0

    async def begin(self) -> tuple[str, int]:
        """Where to begin: behind what an interrupted run of the same embedder did."""
        probe = await self._core.embedder.one("a probe")
        return await self._core.change(lambda change: self._begin(change.db, probe))

    def _begin(self, db: apsw.Connection, probe: bytes | None) -> tuple[str, int]:
        core = self._core
        if core.embedder.present and not core.is_of_this_model(db, probe):
            core.forget_model(db)
            db.execute(SQL["forget_memory_vectors"])
            db.execute(SQL["forget_message_vectors"])
            return KINDS[0], 0
        saved = db.execute(SQL["setting"], (_PLACE,)).fetchone()
        kind, after, *made = (KINDS[0], 0) if saved is None else json.loads(saved[0])
        return (kind, after) if made == self._made() else (KINDS[0], 0)

    def _made(self) -> list[str | None]:
        """What the rows before the place were rebuilt by."""
        return [__version__, self._core.model]

    async def rebuild(self, kind: str, after: int) -> None:
        """Rebuild the rows of one kind, those behind `after`."""
        core = self._core
        while rows := await core.engine.read_async(_texts(kind, self._realm, after)):
            vectors = await core.embedder.many([spoken(row[3], row[4]) for row in rows])
            after = rows[-1][0]
            place = json.dumps([kind, after, *self._made()]) if self._realm is None else None
            await core.change(_write(core, kind, rows, vectors, keep=self._keep, place=place))
            self.done += len(rows)
            if self._progress is not None:
                self._progress(self.done)


def _texts(kind: str, realm: RealmKey | None, after: int) -> Callable[[apsw.Connection], list[Row]]:
    values = {**parts_of(realm), "after": after, "limit": _BATCH}
    return lambda db: list(db.execute(SQL[f"{kind}_texts"], values))


def _write(
    core: Core,
    kind: str,
    rows: list[Row],
    vectors: list[bytes | None],
    *,
    keep: bool,
    place: str | None,
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
        if place is not None:
            db.execute(SQL["record_setting"], (_PLACE, place))

    return job


def _touch(db: apsw.Connection, audience: int) -> int:
    row = db.execute(SQL["touch_audience_id"], (audience,)).fetchone()
    return 0 if row is None else int(row[0])
