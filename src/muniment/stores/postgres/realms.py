"""The verbs by realm, and the chain of a memory's supersessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey
from muniment.governance.quotas import Totals
from muniment.stores.postgres.audiences import seen
from muniment.stores.postgres.session import Row, Session
from muniment.stores.rows import askable, memory_of
from muniment.stores.supersession import chronological


class Sight(NamedTuple):
    """Which rows are found, and the values that their statements take."""

    kind: str
    values: Mapping[str, Any]


def by_visibility(keys: tuple[str, ...], now: int) -> Sight:
    """Rows that a caller with these audiences sees."""
    return Sight("visible", {**seen(keys), "now": now})


def by_coverage(realm: RealmKey) -> Sight:
    """Rows that belong to a realm."""
    return Sight("covered", parts_of(realm))


async def chain(session: Session, sight: Sight, memory_id: str) -> tuple[Memory, ...]:
    """The supersessions around one memory, oldest first; empty where it is not found."""
    kind = sight.kind
    values = {**sight.values, "value": askable(memory_id)}
    found = await session.all(f"{kind}_by_memory_id", values)
    if not found:
        return ()
    audience = min(found, key=_width)[0]
    rows = await session.all(f"{kind}_chain", {**values, "audience": audience})
    return chronological(memory_id, map(memory_of, rows))


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
