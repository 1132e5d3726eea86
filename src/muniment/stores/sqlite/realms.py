"""The verbs by realm, and the chain of a memory's supersessions."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey
from muniment.governance import events
from muniment.stores.erasure import ErasureResult
from muniment.stores.rows import Row, memory_of
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.writes import remove_memory
from muniment.stores.supersession import chronological

Find = Callable[[apsw.Connection, str, str], list[Row]]

_LONGEST_CHAIN = 1_000


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
    start = sorted(find(db, "memory_id", memory_id), key=_width)
    if not start:
        return ()
    audience = start[0][0]
    members = {memory_id: memory_of(start[0][1:])}
    todo = [memory_id]
    while todo and len(members) < _LONGEST_CHAIN:
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
    return int(db.execute(SQL["count_covered"], parts_of(realm)).get)


def erased(change: Change, realm: RealmKey) -> ErasureResult:
    """Like `erase`, and recorded as the erasure of the realm."""
    result = erase(change, realm)
    change.record(
        events.REALM_ERASED,
        realm,
        entries=result.entries,
        sessions=result.sessions,
        messages=result.messages,
        working_states=result.working_states,
    )
    return result


def erase(change: Change, realm: RealmKey) -> ErasureResult:
    """Remove memories, conversations and working state that the realm covers.

    A memory outside the realm that one inside had replaced is current again.
    """
    db, gone = change.db, _hand_back(change, realm)
    gone += [row[0] for row in db.execute(SQL["erase_memories"], parts_of(realm))]
    messages: list[int] = []
    sessions = states = 0
    if realm.agent is None:  # conversations and runs belong to no agent
        messages = [row[0] for row in db.execute(SQL["erase_messages"], parts_of(realm))]
        sessions = len(db.execute(SQL["erase_conversations"], parts_of(realm)).fetchall())
        states = len(db.execute(SQL["erase_working"], parts_of(realm)).fetchall())
    touched = sorted({*gone, *messages})
    db.execute(SQL["count_removals"], (json_list(touched),))
    db.execute(SQL["forget_audiences"], (json_list(touched),))
    return ErasureResult(len(gone), sessions, len(messages), states)


def _hand_back(change: Change, realm: RealmKey) -> list[int]:
    """Delete the replacements of what stays, one by one; the audiences of those deleted."""
    gone: list[int] = []
    while rows := _replacements(change.db, realm):
        for audience, memory_id in dict.fromkeys(rows):
            remove_memory(change, audience, memory_id)
            gone.append(audience)
    return gone


def _replacements(db: apsw.Connection, realm: RealmKey) -> list[tuple[int, str]]:
    found: list[Row] = db.execute(SQL["replacements_in_realm"], parts_of(realm)).fetchall()
    return [(row[0], row[1]) for row in found]


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
