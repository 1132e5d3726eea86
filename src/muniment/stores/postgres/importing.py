"""Importing: what is read is staged in batches, then published in one transaction or not at all."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
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
from muniment.stores.postgres.importing_talks import publish_talks
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.totals import held_quota
from muniment.stores.rows import dumps, memory_row, micros
from muniment.stores.transfer import ImportResult, Intake
from muniment.stores.transfer_lines import refused
from muniment.stores.transfer_reading import (
    ABOVE_SOURCES,
    IN_A_CIRCLE,
    USED_TWICE,
    Incoming,
    read_lines,
)
from muniment.stores.transfer_talks import Said, Talk, talk_row

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
    lines = read_lines(stream, taking, now=now)
    batches = _batches(lines, number, micros(now), core.limits.count)
    count = 0
    try:
        await core.write(tenant, lambda db: _drop(db, "drop_stale", stale))
        while batch := await asyncio.to_thread(next, batches, None):
            count += len(batch.entries) + len(batch.talks)
            await _stage(core, tenant, batch)
        return await core.change(
            tenant,
            lambda change: _publish(change, number, count, taking),
            seconds=_PUBLISH_SECONDS,
        )
    except BaseException:
        await core.write(tenant, lambda db: _drop(db, "drop", {"import": number}))
        raise


async def _drop(db: Session, verb: str, which: StagedRow) -> None:
    await db.run(f"{verb}_staged", which)
    await db.run(f"{verb}_staged_talks", which)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some lines of a file as rows."""

    entries: list[StagedRow]
    talks: list[StagedRow]


def _batches(
    lines: Iterator[Incoming | Talk | Said], number: int, begun: int, count: TokenEstimator
) -> Iterator[_Batch]:
    fixed = {"import": number, "begun": begun}
    while some := list(islice(lines, _BATCH)):
        yield _Batch(
            [_row(one, fixed, count) for one in some if isinstance(one, Incoming)],
            [talk_row(one, fixed) for one in some if not isinstance(one, Incoming)],
        )


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


async def _stage(core: Core, tenant: str, batch: _Batch) -> None:
    every = [*batch.entries, *batch.talks]
    made = await core.embedder.many([row["content"] for row in every])

    async def job(db: Session) -> None:
        vectors = await core.admit(db, made)
        rows = [{**row, "vector": vector} for row, vector in zip(every, vectors, strict=True)]
        entries, talks = rows[: len(batch.entries)], rows[len(batch.entries) :]
        if entries:
            await db.run_many("stage_memory", entries)
        if talks:
            await db.run_many("stage_talk", talks)

    await core.write(tenant, job)


async def _publish(change: Change, number: int, count: int, taking: Intake) -> ImportResult:
    db, which = change.db, {"import": number}
    staged = await _figure(db, "count_staged", which)
    if staged + await _figure(db, "count_staged_talks", which) != count:
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
    sessions, messages = await publish_talks(change, number)
    await _drop(db, "drop", which)
    return ImportResult(imported, skipped, dropped + unlinked, sessions, messages)


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
