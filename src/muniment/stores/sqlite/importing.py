"""Importing: what is read is staged in batches, then published in one transaction or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO, cast

import apsw

from muniment.domain.trust import Trust
from muniment.errors import MemoryStoreError
from muniment.governance import events
from muniment.stores.driven import in_thread
from muniment.stores.rows import Row, micros
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.importing_rows import Batch, Staged, Staging
from muniment.stores.sqlite.importing_talks import publish_talks
from muniment.stores.sqlite.journal import settle
from muniment.stores.sqlite.staging import drop, drop_stale, forget
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.totals import held_quota
from muniment.stores.transfer import ImportResult, Intake
from muniment.stores.transfer_lines import refused
from muniment.stores.transfer_reading import (
    ABOVE_SOURCES,
    IN_A_CIRCLE,
    USED_TWICE,
    read_lines,
)

_BATCH = 400
_RECORDED = 1_000


async def import_stream(core: Core, stream: BinaryIO, taking: Intake) -> ImportResult:
    """Import a file's entries, all or none; InvalidEntryError names the line that is bad.

    Other writers go on meanwhile; what is staged belongs to nobody until it is published.
    """
    number, now = secrets.randbits(62), core.clock()
    lines, staging = read_lines(stream, taking, now=now), Staging(core)
    staged = staging.staged

    def read() -> Batch:
        return Batch.of(
            list(islice(lines, _BATCH)), number, micros(core.clock()), core.limits.count
        )

    try:
        await core.engine.write_async(lambda db: drop_stale(db, now))
        while batch := await in_thread(read):
            await staging.put(batch)
        await staging.settled()
        return await core.change(lambda change: _publish(change, number, staged, taking))
    except BaseException:
        if staged.count and await core.engine.write_async(lambda db: drop(db, number)):
            await core.engine.apart_async(settle)
        raise


def _publish(change: Change, number: int, staged: Staged, taking: Intake) -> ImportResult:
    db, tenant = change.db, taking.realm.tenant
    there = _figure(db, "count_staged", number) + _figure(db, "count_staged_talks", number)
    if there != staged.count:
        raise MemoryStoreError("the realm was erased meanwhile; nothing was imported")
    _refuse(db.execute(SQL["staged_twice"], (number,)), USED_TWICE)
    if taking.skip_duplicates:
        db.execute(SQL["find_staged_twins"], (number,))
    dropped = _link(db, number) if staged.linked else 0
    imported, tokens, skipped, unlinked = db.execute(SQL["staged_figures"], (number,)).get
    with held_quota(change, tenant):
        if imported:
            db.execute(SQL["count_published"], (tenant, imported, tokens))
        db.execute(SQL["staged_audiences"], (number,))
        db.execute(SQL["touch_staged_audiences"], (number,))
        with _without_triggers(db):
            db.execute(SQL["publish_staged"], (number,))
    if staged.linked:
        _derive(db, number)
    _record(change, number, taking)
    sessions, messages = publish_talks(change, number)
    forget(db, number)
    return ImportResult(imported, skipped, dropped + unlinked, sessions, messages)


def _derive(db: apsw.Connection, number: int) -> None:
    """Link what was published to what it was derived from, above which its trust is not."""
    db.execute(SQL["published_derivations"], (number,))
    above = db.execute(SQL["published_above_sources"], (number, Trust.OWNER.rank))
    _refuse(above, ABOVE_SOURCES)


@contextmanager
def _without_triggers(db: apsw.Connection) -> Iterator[None]:
    # The only one there is for new rows counts them one by one, at two fifths of their cost.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        yield
    finally:
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def _link(db: apsw.Connection, number: int) -> int:
    """Make the file's links links between new entries; how many derivations lead nowhere."""
    before = _figure(db, "staged_derivations", number)
    db.execute(SQL["link_staged"], (number,))
    if db.changes():
        circle = db.execute(SQL["staged_circle"], (number,))
        _refuse(circle, IN_A_CIRCLE)
    if before:
        db.execute(SQL["derive_staged"], (number,))
    return before - _figure(db, "staged_derivations", number)


def _figure(db: apsw.Connection, name: str, number: int) -> int:
    return cast(int, db.execute(SQL[name], (number,)).get)


def _refuse(found: apsw.Cursor, problem: str) -> None:
    rows: list[Row] = found.fetchall()  # to its end: an open statement would hinder the next
    if rows:
        raise refused(rows[0][0], problem)


def _record(change: Change, number: int, taking: Intake) -> None:
    last = 0
    while change.audited:
        values = (number, last, _RECORDED)
        rows: list[Row] = change.db.execute(SQL["staged_ids"], values).fetchall()
        if not rows:
            return
        ids = [str(row[1]) for row in rows]
        change.record_ids(events.MEMORIES_IMPORTED, taking.realm, ids)
        last = rows[-1][0]
