"""Writing memories: every function runs inside the writer's transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import apsw

from muniment.domain.memory import Memory
from muniment.errors import InvalidEntryError
from muniment.governance import events
from muniment.ports import StoredFact
from muniment.stores.memory_rows import Written, digest, placed, written
from muniment.stores.provenance import told
from muniment.stores.rows import memory_of
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.derivations import Derivation, SourceFinder, seen_by
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.totals import held_quota
from muniment.stores.supersession import (
    closed_for_known,
    gives_way,
    handed_back,
    is_live,
    replaced,
    said_elsewhere,
    succession,
    twin_of,
)


def touch(db: apsw.Connection, key: str) -> tuple[int, int]:
    """The audience's id and its next version."""
    row: Any = db.execute(SQL["touch_audience"], (key,)).fetchone()
    if row is None:
        row = db.execute(SQL["new_audience"], (key,)).fetchone()
    return int(row[0]), int(row[1])


def write_memory(
    change: Change,
    key: str,
    memory: Memory,
    row: Written | None = None,
    *,
    vector: bytes | None,
    fact: bool = False,
) -> Memory:
    """Insert or update one row of an audience; the same content keeps the vector it has.

    What it is derived from is found as its owner sees it. QuotaExceededError where the tenant
    has no room, InvalidEntryError for a source that is not there or whose trust is lower.
    """
    row = row or written(memory, change.limits.count)
    audience, changed = touch(change.db, key)
    derivation = Derivation(change, audience, memory, seen_by(memory.owner))
    if change.audited:
        held = _find(change.db, audience, memory.memory_id)
        event = events.MEMORY_SAVED if held is None else events.MEMORY_UPDATED
        change.record_memory(event, memory)
    row["fact_key"] = row["digest"] if fact else None
    row["audience"], row["changed"], row["vector"] = audience, changed, vector
    with held_quota(change, memory.owner.tenant_id):
        change.db.execute(SQL["save_memory"], row)
    derivation.link()
    return memory


def write_new(
    change: Change,
    key: str,
    memory: Memory,
    row: Written,
    *,
    vector: bytes | None,
    sources: SourceFinder | None,
) -> None:
    """`write_memory` for a memory whose id was made for it; `sources` finds its sources, if any."""
    audience, changed = touch(change.db, key)
    derivation = None if sources is None else Derivation(change, audience, memory, sources)
    change.record_memory(events.MEMORY_SAVED, memory)
    with held_quota(change, memory.owner.tenant_id):
        change.db.execute(SQL["insert_memory"], (audience, changed, vector, *row.values()))
    if derivation is not None:
        derivation.link()


def remove_memory(change: Change, audience: int, memory_id: str) -> None:
    """Delete a row; what it had replaced is current again, unless the same is live elsewhere."""
    db, now = change.db, change.now
    row: Any = db.execute(SQL["delete_memory"], (audience, memory_id)).fetchone()
    version = int(db.execute(SQL["count_removals"], (json_list([audience]),)).get)
    deleted, was_fact = memory_of(row[1:]), row[0] is not None
    change.record_memory(events.MEMORY_DELETED, deleted)
    prior = _predecessor(db, audience, deleted)
    if prior is None or said_elsewhere(prior, _same_content(db, audience, prior), now):
        return
    reopened = handed_back(prior, deleted)
    fact = was_fact and is_live(reopened, now)
    _replace(db, audience, version, reopened, fact_key=digest(reopened) if fact else None)
    change.record_memory(events.MEMORY_REOPENED, reopened)


def write_fact(
    change: Change,
    key: str,
    memory: Memory,
    *,
    supersedes: str | None,
    vector: bytes | None,
) -> StoredFact:
    """A fact that exists once in its audience; see `muniment.ports.FactStore`."""
    db, now = change.db, change.now
    memory = replace(memory, content_hash=digest(memory))
    audience, version = touch(db, key)
    twin = twin_of(memory, _same_content(db, audience, memory), now)
    if twin is not None:
        return told(_known(change, audience, version, twin, supersedes), memory)
    if _find(db, audience, memory.memory_id) is not None:
        raise InvalidEntryError("memory_id: names another fact already")
    # Those that are left are over: expired, or not valid any more.
    db.execute(SQL["release_fact"], (audience, memory.content_hash))
    changed: tuple[Memory, ...] = ()
    prior = None if supersedes is None else _find(db, audience, supersedes)
    if prior is not None and is_live(prior, now):
        memory, changed = succession(
            memory, prior, lambda row: _predecessor(db, audience, row), now
        )
    _close(change, audience, version, changed)
    write_memory(change, key, memory, vector=vector, fact=is_live(memory, now))
    return StoredFact(memory, created=True, superseded=changed[0].memory_id if changed else None)


def write_replacement(
    change: Change, key: str, old: Memory, new: Memory, *, vector: bytes | None
) -> Memory:
    """Put `new` in the place of `old`, a row of the same audience that nothing has replaced."""
    db, now = change.db, change.now
    audience, version = touch(db, key)
    new, changed = replaced(old, new, lambda row: _predecessor(db, audience, row), now)
    _close(change, audience, version, changed)
    return write_memory(change, key, new, vector=vector)


def _known(
    change: Change, audience: int, version: int, twin: Memory, supersedes: str | None
) -> StoredFact:
    """A fact that is known already still closes the one that it replaces."""
    db, now = change.db, change.now
    prior = None if supersedes is None else _find(db, audience, supersedes)
    if not gives_way(prior, twin, now):
        return StoredFact(twin, created=False)
    changed = closed_for_known(prior, twin, lambda row: _predecessor(db, audience, row), now)
    _close(change, audience, version, changed)
    return StoredFact(twin, created=False, superseded=prior.memory_id)


def _close(change: Change, audience: int, version: int, rows: tuple[Memory, ...]) -> None:
    """Put the rows of a succession in their places; the first is the one that was replaced."""
    for row in rows:
        _replace(change.db, audience, version, row, fact_key=None)
    for row in rows[:1]:
        change.record_memory(events.MEMORY_SUPERSEDED, row, superseded_by=row.superseded_by)


def _replace(
    db: apsw.Connection, audience: int, version: int, memory: Memory, *, fact_key: str | None
) -> None:
    keys = {"audience": audience, "changed": version, "fact_key": fact_key}
    db.execute(SQL["place_memory"], {**placed(memory), **keys})


def _find(db: apsw.Connection, audience: int, memory_id: str) -> Memory | None:
    row = db.execute(SQL["memory_of_audience"], (audience, memory_id)).fetchone()
    return None if row is None else memory_of(row)


def _predecessor(db: apsw.Connection, audience: int, memory: Memory) -> Memory | None:
    row = db.execute(SQL["predecessor"], (audience, memory.memory_id)).fetchone()
    return None if row is None else memory_of(row)


def _same_content(db: apsw.Connection, audience: int, memory: Memory) -> list[Memory]:
    return list(map(memory_of, db.execute(SQL["same_content"], (audience, digest(memory)))))
