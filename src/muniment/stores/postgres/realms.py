"""The verbs by realm, and the chain of a memory's supersessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from muniment.domain.memory import Memory
from muniment.domain.realm import RealmKey
from muniment.governance import events
from muniment.stores.erasure import ErasureResult
from muniment.stores.postgres.audiences import digest_of_parts, seen
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.session import Row, Session
from muniment.stores.postgres.writes import remove_memory
from muniment.stores.rows import memory_of
from muniment.stores.supersession import chronological

Find = Callable[[Session, str, str], Awaitable[list[Row]]]

_LONGEST_CHAIN = 1_000


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
    start = sorted(await find(session, "memory_id", memory_id), key=_width)
    if not start:
        return ()
    audience = start[0][0]
    members = {memory_id: memory_of(start[0][1:])}
    todo = [memory_id]
    while todo and len(members) < _LONGEST_CHAIN:
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


async def erased(change: Change, realm: RealmKey) -> ErasureResult:
    """Like `erase`, and recorded as the erasure of the realm."""
    result = await erase(change, realm)
    change.record(
        events.REALM_ERASED,
        realm,
        entries=result.entries,
        sessions=result.sessions,
        messages=result.messages,
        working_states=result.working_states,
    )
    return result


async def erase(change: Change, realm: RealmKey) -> ErasureResult:
    """Remove memories, conversations and working state that the realm covers.

    A memory outside the realm that one inside had replaced is current again.
    """
    db, parts = change.db, parts_of(realm)
    await db.all("lock_audiences", parts)  # in one order, before anything changes
    gone = await _hand_back(change, realm)
    gone += [row[0] for row in await db.all("erase_memories", parts)]
    messages: list[int] = []
    talks: list[Row] = []
    states = 0
    if realm.agent is None:  # conversations and runs belong to no agent
        messages = [row[0] for row in await db.all("erase_messages", parts)]
        talks = await db.all("erase_conversations", parts)
        ended = {"talks": [digest_of_parts(*row[1:]) for row in talks]}
        await db.run("end_leases", ended)
        await db.run("end_requests", ended)
        states = len(await db.all("erase_working", parts))
    touched = {"audiences": sorted({*gone, *messages, *(row[0] for row in talks)})}
    await db.run("count_removals", touched)
    await db.run("forget_audiences", touched)
    return ErasureResult(len(gone), len(talks), len(messages), states)


async def _hand_back(change: Change, realm: RealmKey) -> list[int]:
    """Delete the replacements of what stays, one by one; the audiences of those deleted."""
    gone: list[int] = []
    while rows := await change.db.all("replacements_in_realm", parts_of(realm)):
        for audience, memory_id in dict.fromkeys(rows):
            await remove_memory(change, audience, memory_id)
            gone.append(audience)
    return gone


def parts_of(realm: RealmKey) -> dict[str, str | None]:
    """The named parts of a realm for a statement; the tenant is the session's."""
    return {"subject": realm.subject, "agent": realm.agent, "session": realm.session}
