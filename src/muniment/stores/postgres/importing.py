"""Importing: what is read is staged in batches, then published in one transaction or not at all."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any, BinaryIO

from muniment.domain.content import content_hash
from muniment.domain.trust import Trust
from muniment.errors import MemoryStoreError
from muniment.governance import events
from muniment.governance.tokens import TokenEstimator
from muniment.lexical.indexing import index_text
from muniment.stores.postgres.audiences import digest_of, user_of
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.core import Core
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.totals import held_quota
from muniment.stores.rows import dumps, memory_row, micros
from muniment.stores.transfer import ImportResult, Intake
from muniment.stores.transfer_reading import (
    ABOVE_SOURCES,
    IN_A_CIRCLE,
    USED_TWICE,
    Incoming,
    read_entries,
    refused,
)

_BATCH = 500
_RECORDED = 1_000
_STALE = timedelta(hours=1)
_PUBLISH_SECONDS = 600.0

StagedRow = dict[str, Any]


async def import_stream(core: Core, stream: BinaryIO, taking: Intake) -> ImportResult:
    """Import a file's entries, all or none; InvalidEntryError names the line that is bad.

    Other writers go on meanwhile; what is staged belongs to nobody until it is published.
    """
    number, now, tenant = secrets.randbits(62), core.clock(), taking.realm.tenant
    stale = {"begun": micros(now - _STALE)}  # of imports that were killed
    entries = read_entries(stream, taking, now=now)
    batches = _batches(entries, number, micros(now), core.limits.count)
    count = 0
    try:
        await core.write(tenant, lambda db: db.run("drop_stale_staged", stale))
        while batch := await asyncio.to_thread(next, batches, None):
            count += len(batch)
            await _stage(core, tenant, batch)
        return await core.change(
            tenant,
            lambda change: _publish(change, number, count, taking),
            seconds=_PUBLISH_SECONDS,
        )
    except BaseException:
        await core.write(tenant, lambda db: db.run("drop_staged", {"import": number}))
        raise


def _batches(
    entries: Iterator[Incoming], number: int, begun: int, count: TokenEstimator
) -> Iterator[list[StagedRow]]:
    fixed = {"import": number, "begun": begun}
    while batch := [_row(entry, fixed, count) for entry in islice(entries, _BATCH)]:
        yield batch


def _row(entry: Incoming, fixed: StagedRow, count: TokenEstimator) -> StagedRow:
    memory = entry.memory
    indexed = index_text(memory.content)
    return {
        **memory_row(memory),
        **fixed,
        "line": entry.line,
        "old_id": entry.old_id,
        "link": entry.superseded_by,
        "derived_from": dumps(entry.derived_from),
        "audience_key": entry.audience,
        "audience_digest": digest_of(entry.audience),
        "audience_user": user_of(entry.audience),
        "digest": content_hash(memory.content, memory.scope),
        "tokens": count(memory.content),
        "terms": indexed.terms,
        "marks": indexed.marks,
        "length": indexed.length,
    }


async def _stage(core: Core, tenant: str, batch: list[StagedRow]) -> None:
    made = await core.embedder.many([row["content"] for row in batch])

    async def job(db: Session) -> None:
        vectors = await core.admit(db, made)
        rows = [{**row, "vector": vector} for row, vector in zip(batch, vectors, strict=True)]
        await db.run_many("stage_memory", rows)

    await core.write(tenant, job)


async def _publish(change: Change, number: int, count: int, taking: Intake) -> ImportResult:
    db, which = change.db, {"import": number}
    if await _figure(db, "count_staged", which) != count:
        raise MemoryStoreError("the realm was erased meanwhile; nothing was imported")
    await _refuse(db, "staged_twice", which, USED_TWICE)
    if taking.skip_duplicates:
        await db.run("find_staged_twins", which)
    dropped = await _link(db, which)
    async with held_quota(change):
        await db.run("touch_staged_audiences", which)
        await db.run("publish_staged", which)
    await db.run("published_derivations", which)
    owner = {**which, "owner": Trust.OWNER.rank}
    await _refuse(db, "published_above_sources", owner, ABOVE_SOURCES)
    figures = await db.one("staged_figures", which)
    imported, skipped, unlinked = figures or (0, 0, 0)
    await _record(change, number, taking)
    await db.run("drop_staged", which)
    return ImportResult(imported, skipped, dropped + unlinked)


async def _link(db: Session, which: StagedRow) -> int:
    """Make the file's links links between new entries; how many derivations lead nowhere."""
    before = await _figure(db, "staged_derivations", which)
    if await db.run("link_staged", which):
        await _refuse(db, "staged_circle", which, IN_A_CIRCLE)
    if before:
        await db.run("derive_staged", which)
    return before - await _figure(db, "staged_derivations", which)


async def _figure(db: Session, name: str, which: StagedRow) -> int:
    row = await db.one(name, which)
    return 0 if row is None else int(row[0])


async def _refuse(db: Session, name: str, which: StagedRow, problem: str) -> None:
    row = await db.one(name, which)
    if row is not None:
        raise refused(row[0], problem)


async def _record(change: Change, number: int, taking: Intake) -> None:
    last = 0
    while change.audited:
        place = {"import": number, "line": last, "limit": _RECORDED}
        rows = await change.db.all("staged_ids", place)
        if not rows:
            return
        ids = [str(row[1]) for row in rows]
        change.record_ids(events.MEMORIES_IMPORTED, taking.realm, ids)
        last = rows[-1][0]
