"""The verbs by realm, and the chain of a memory's supersessions."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey
from muniment.governance.quotas import Totals
from muniment.stores.rows import Row, askable, memory_of
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.statements import SQL, covered
from muniment.stores.supersession import chronological

Find = Callable[[apsw.Connection, str, str], list[Row]]


def by_visibility(keys: tuple[str, ...], now: int) -> Find:
    """Rows that a caller with these audiences sees: by id, or by what superseded them."""

    def find(db: apsw.Connection, column: str, value: str) -> list[Row]:
        return list(db.execute(SQL[f"visible_by_{column}"], (value, json_list(keys), now)))

    return find


def by_coverage(realm: RealmKey) -> Find:
    """Rows that belong to a realm."""

    def find(db: apsw.Connection, column: str, value: str) -> list[Row]:
        return list(db.execute(SQL[f"covered_by_{column}"], {**parts_of(realm), "value": value}))

    return find


def chain(db: apsw.Connection, find: Find, memory_id: str) -> tuple[Memory, ...]:
    """The supersessions around one memory, oldest first; empty where it is not found."""
    start = sorted(find(db, "memory_id", askable(memory_id)), key=_width)
    if not start:
        return ()
    audience = start[0][0]
    members = {memory_id: memory_of(start[0][1:])}
    todo = [memory_id]
    while todo:
        current = members[todo.pop()]
        rows = find(db, "superseded_by", current.memory_id)
        if current.superseded_by is not None:
            rows += find(db, "memory_id", current.superseded_by)
        for row in rows:
            memory = memory_of(row[1:])
            if row[0] == audience and memory.memory_id not in members:
                members[memory.memory_id] = memory
                todo.append(memory.memory_id)
    return chronological(memory_id, members.values())


def _width(row: Row) -> int:
    return memory_of(row[1:]).scope.width


def count(db: apsw.Connection, realm: RealmKey) -> int:
    """Memories that the realm covers."""
    return int(db.execute(covered("count_covered", realm), parts_of(realm)).get)


def stored(db: apsw.Connection, realm: RealmKey) -> Totals:
    """Memories that the realm covers, and the tokens of their texts."""
    entries, tokens = db.execute(covered("usage_covered", realm), parts_of(realm)).get
    return Totals(entries, tokens)


def parts_of(realm: RealmKey | None) -> dict[str, str | None]:
    """The named parts of a realm for a statement; all None stands for everything."""
    if realm is None:
        return dict.fromkeys(("tenant", "subject", "agent", "session"))
    return {
        "tenant": realm.tenant,
        "subject": realm.subject,
        "agent": realm.agent,
        "session": realm.session,
    }
