"""Writing memories: every function runs inside the writer's transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory
from muniment.lexical.indexing import index_text
from muniment.ports import StoredFact
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.rows import memory_of, memory_row
from muniment.stores.sqlite.statements import SQL
from muniment.stores.supersession import handed_back, is_live, is_twin, placed


def touch(db: apsw.Connection, key: str) -> tuple[int, int]:
    """The audience's id and its next version."""
    row: Any = db.execute(SQL["touch_audience"], (key,)).fetchone()
    return int(row[0]), int(row[1])


def write_memory(
    db: apsw.Connection, key: str, memory: Memory, *, vector: bytes | None, fact: bool = False
) -> Memory:
    """Insert or update one row of an audience; `fact` claims the content for this row alone."""
    audience, changed = touch(db, key)
    indexed = index_text(memory.content)
    db.execute(
        SQL["save_memory"],
        {
            **memory_row(memory),
            "audience": audience,
            "changed": changed,
            "fact_key": memory.content_hash if fact else None,
            "terms": indexed.terms,
            "marks": indexed.marks,
            "length": indexed.length,
            "vector": vector,
        },
    )
    return memory


def remove_memory(db: apsw.Connection, audience: int, key: str, memory_id: str) -> None:
    """Delete a row; the one that it had replaced lasts for as long as this one did."""
    deleted = _row(db, audience, memory_id)
    if deleted is None:
        return
    db.execute(SQL["delete_memory"], (audience, memory_id))
    db.execute(SQL["count_removals"], (json_list([audience]),))
    prior = _predecessor(db, audience, memory_id)
    if prior is not None:
        reopened = handed_back(prior, deleted)
        if reopened.superseded_by is not None or not _said_again(db, audience, prior):
            _update(db, key, reopened)


def write_fact(
    db: apsw.Connection,
    key: str,
    memory: Memory,
    *,
    supersedes: str | None,
    vector: bytes | None,
    now: datetime,
) -> StoredFact:
    """A fact that exists once in its audience; see `muniment.ports.FactStore`."""
    digest = content_hash(memory.content, memory.scope)
    memory = replace(memory, content_hash=digest)
    audience, _ = touch(db, key)
    for row in db.execute(SQL["same_content"], (audience, digest)).fetchall():
        held = memory_of(row)
        if is_twin(held, memory, now):
            return StoredFact(held, created=False)
        db.execute(SQL["release_fact"], (audience, held.memory_id))
    prior = None if supersedes is None else _row(db, audience, supersedes)
    if prior is None or prior.memory_id == memory.memory_id or not is_live(prior, now):
        write_memory(db, key, memory, vector=vector, fact=is_live(memory, now))
        return StoredFact(memory, created=True)
    memory, closed = placed(
        memory, prior, lambda row: _predecessor(db, audience, row.memory_id), now
    )
    if closed is not None:
        _update(db, key, closed)
    write_memory(db, key, memory, vector=vector, fact=is_live(memory, now))
    return StoredFact(memory, created=True, superseded=closed.memory_id if closed else None)


def _update(db: apsw.Connection, key: str, memory: Memory) -> None:
    """New validity for a row whose content, and so whose index, stays."""
    _, changed = touch(db, key)
    db.execute(SQL["place_memory"], {**memory_row(memory), "key": key, "changed": changed})


def _row(db: apsw.Connection, audience: int, memory_id: str) -> Memory | None:
    row = db.execute(SQL["own_memory"], (audience, memory_id)).fetchone()
    return None if row is None else memory_of(row)


def _predecessor(db: apsw.Connection, audience: int, memory_id: str) -> Memory | None:
    row = db.execute(SQL["predecessor"], (audience, memory_id)).fetchone()
    return None if row is None else memory_of(row)


def _said_again(db: apsw.Connection, audience: int, memory: Memory) -> bool:
    """Whether another live row holds the same fact."""
    if memory.content_hash is None:
        return False
    rows = db.execute(SQL["same_content"], (audience, memory.content_hash)).fetchall()
    others = (held for held in map(memory_of, rows) if held.memory_id != memory.memory_id)
    return any(held.superseded_by is None and held.invalid_at is None for held in others)
