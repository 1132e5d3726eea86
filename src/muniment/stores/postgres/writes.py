"""Writing memories: every function runs inside a transaction that writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from muniment.domain.memory import Memory
from muniment.errors import InvalidEntryError
from muniment.governance import events
from muniment.ports import StoredFact
from muniment.stores.memory_rows import digest, placed, written
from muniment.stores.postgres.audiences import touch
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.derivations import Derivation, SourceFinder, seen_by
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.totals import held_quota
from muniment.stores.postgres.vectors import Halfvec
from muniment.stores.provenance import told
from muniment.stores.rows import memory_of
from muniment.stores.supersession import (
    closed_for_known,
    gives_way,
    is_live,
    needs_predecessor,
    replaced,
    succession,
    twin_of,
)


async def write_memory(
    change: Change,
    key: str,
    memory: Memory,
    *,
    vector: Halfvec | None,
    fact: bool = False,
    sources: SourceFinder | None = None,
) -> Memory:
    """Insert or update one row of an audience; the same content keeps the vector it has.

    `sources` finds what it is derived from, by default as its owner sees it. QuotaExceededError
    where the tenant has no room, InvalidEntryError for a source that is not there or whose
    trust is lower.
    """
    row = written(memory, change.limits.count)
    audience, changed = await touch(change.db, key)
    find = sources or seen_by(memory.owner)
    derivation = await Derivation.checked(change, audience, memory, find)
    if change.audited:
        held = await _find(change.db, audience, memory.memory_id)
        event = events.MEMORY_SAVED if held is None else events.MEMORY_UPDATED
        change.record_memory(event, memory)
    place = {"audience": audience, "changed": changed}
    values = {**row, **place, "fact_key": row["digest"] if fact else None, "vector": vector}
    async with held_quota(change):
        moved = await change.db.one("save_memory", values)
    if moved is not None and moved[0]:  # it has left a realm, whose images then drop it
        await change.db.run("count_removals", {"audiences": [audience]})
    await derivation.link()
    return memory


async def write_fact(
    change: Change, key: str, memory: Memory, *, supersedes: str | None, vector: Halfvec | None
) -> StoredFact:
    """A fact that exists once in its audience; see `muniment.ports.FactStore`."""
    db, now = change.db, change.now
    memory = replace(memory, content_hash=digest(memory))
    audience, version = await touch(db, key)
    twin = twin_of(memory, await _same_content(db, audience, memory), now)
    if twin is not None:
        return told(await _known(change, audience, version, twin, supersedes), memory)
    if await _find(db, audience, memory.memory_id) is not None:
        raise InvalidEntryError("memory_id: names another fact already")
    # Those that are left are over: expired, or not valid any more.
    await db.run("release_fact", {"audience": audience, "fact_key": memory.content_hash})
    changed: tuple[Memory, ...] = ()
    prior = None if supersedes is None else await _find(db, audience, supersedes)
    if prior is not None and is_live(prior, now):
        begins = memory.valid_from or now
        earlier = await _predecessors(db, audience, prior, begins)
        memory, changed = succession(memory, prior, lambda row: earlier.get(row.memory_id), now)
    await _close(change, audience, version, changed)
    await write_memory(change, key, memory, vector=vector, fact=is_live(memory, now))
    return StoredFact(memory, created=True, superseded=changed[0].memory_id if changed else None)


async def write_replacement(
    change: Change, key: str, old: Memory, new: Memory, *, vector: Halfvec | None
) -> Memory:
    """Put `new` in the place of `old`, a row of the same audience that nothing has replaced."""
    db, now = change.db, change.now
    audience, version = await touch(db, key)
    earlier = await _predecessors(db, audience, old, new.valid_from or now)
    new, changed = replaced(old, new, lambda row: earlier.get(row.memory_id), now)
    await _close(change, audience, version, changed)
    return await write_memory(change, key, new, vector=vector)


async def _known(
    change: Change, audience: int, version: int, twin: Memory, supersedes: str | None
) -> StoredFact:
    """A fact that is known already still closes the one that it replaces."""
    db, now = change.db, change.now
    prior = None if supersedes is None else await _find(db, audience, supersedes)
    if not gives_way(prior, twin, now):
        return StoredFact(twin, created=False)
    earlier = await _predecessors(db, audience, prior, now)
    changed = closed_for_known(prior, twin, lambda row: earlier.get(row.memory_id), now)
    await _close(change, audience, version, changed)
    return StoredFact(twin, created=False, superseded=prior.memory_id)


async def _close(change: Change, audience: int, version: int, rows: tuple[Memory, ...]) -> None:
    """Put the rows of a succession in their places; the first is the one that was replaced."""
    for row in rows:
        await _replace(change.db, audience, version, row, fact_key=None)
    for row in rows[:1]:
        change.record_memory(events.MEMORY_SUPERSEDED, row, superseded_by=row.superseded_by)


async def _replace(
    db: Session, audience: int, version: int, memory: Memory, *, fact_key: str | None
) -> None:
    keys = {"audience": audience, "changed": version, "fact_key": fact_key}
    await db.run("place_memory", {**placed(memory), **keys})


async def _find(db: Session, audience: int, memory_id: str) -> Memory | None:
    place = {"audience": audience, "memory_id": memory_id}
    row = await db.one("memory_of_audience", place)
    return None if row is None else memory_of(row)


async def _predecessor(db: Session, audience: int, memory: Memory) -> Memory | None:
    place = {"audience": audience, "memory_id": memory.memory_id}
    row = await db.one("predecessor", place)
    return None if row is None else memory_of(row)


async def _predecessors(
    db: Session, audience: int, last: Memory, begins: datetime
) -> dict[str, Memory]:
    """What went before `last`, each under the id of the one that replaced it: as far back as
    something that begins at `begins` may ask."""
    before: dict[str, Memory] = {}
    current = last
    while current.memory_id not in before and needs_predecessor(current, begins, len(before)):
        prior = await _predecessor(db, audience, current)
        if prior is None:
            break
        before[current.memory_id] = current = prior
    return before


async def _same_content(db: Session, audience: int, memory: Memory) -> Sequence[Memory]:
    values = {"audience": audience, "digest": digest(memory)}
    return [memory_of(row) for row in await db.all("same_content", values)]
