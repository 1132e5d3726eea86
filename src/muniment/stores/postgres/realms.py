"""The verbs by realm, and the chain of a memory's supersessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey
from muniment.governance.quotas import Totals
from muniment.stores.postgres.audiences import seen
from muniment.stores.postgres.session import Row, Session
from muniment.stores.rows import askable, memory_of
from muniment.stores.supersession import chronological

Find = Callable[[Session, str, str], Awaitable[list[Row]]]


def by_visibility(keys: tuple[str, ...], now: int) -> Find:
    """Rows that a caller with these audiences sees: by id, or by what superseded them."""
    values = {**seen(keys), "now": now}

    async def find(session: Session, column: str, value: str) -> list[Row]:
        return await session.all(f"visible_by_{column}", {**values, "value": value})

    return find


def by_coverage(realm: RealmKey) -> Find:
    """Rows that belong to a realm."""

    async def find(session: Session, column: str, value: str) -> list[Row]:
        return await session.all(f"covered_by_{column}", {**parts_of(realm), "value": value})

    return find


async def chain(session: Session, find: Find, memory_id: str) -> tuple[Memory, ...]:
    """The supersessions around one memory, oldest first; empty where it is not found."""
    start = sorted(await find(session, "memory_id", askable(memory_id)), key=_width)
    if not start:
        return ()
    audience = start[0][0]
    members = {memory_id: memory_of(start[0][1:])}
    todo = [memory_id]
    while todo:
        current = members[todo.pop()]
        rows = await find(session, "superseded_by", current.memory_id)
        if current.superseded_by is not None:
            rows += await find(session, "memory_id", current.superseded_by)
        for row in rows:
            memory = memory_of(row[1:])
            if row[0] == audience and memory.memory_id not in members:
                members[memory.memory_id] = memory
                todo.append(memory.memory_id)
    return chronological(memory_id, members.values())


def _width(row: Row) -> int:
    return memory_of(row[1:]).scope.width


async def count(session: Session, realm: RealmKey) -> int:
    """Memories that the realm covers."""
    row = await session.one("count_covered", parts_of(realm))
    return 0 if row is None else int(row[0])


async def stored(session: Session, realm: RealmKey) -> Totals:
    """Memories that the realm covers, and the tokens of their texts."""
    row = await session.one("usage_covered", parts_of(realm))
    return Totals() if row is None else Totals(*row)


def parts_of(realm: RealmKey) -> dict[str, str | None]:
    """The named parts of a realm for a statement; the tenant is the session's."""
    return {"subject": realm.subject, "agent": realm.agent, "session": realm.session}
