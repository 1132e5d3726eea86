"""Removing what a realm covers: all of it, or what its time is over for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muniment.domain.realm import RealmKey
from muniment.governance import events
from muniment.stores.erasure import Erased, Removed
from muniment.stores.postgres.audiences import digest_of_parts
from muniment.stores.postgres.cascade import Cascade
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.realms import parts_of
from muniment.stores.postgres.removals import Place, Removal
from muniment.stores.postgres.session import Row
from muniment.stores.rows import micros


async def erase_realm(change: Change, realm: RealmKey, *, cascade: bool) -> Removed:
    """`erase`, recorded as the erasure of the realm.

    It is pending: dead rows hold the bytes until the tables are vacuumed.
    """
    erased, audiences = await erase(change, realm, cascade=cascade)
    if realm == RealmKey(realm.tenant):
        await change.db.run("forget_served", {})
    await change.db.run("erase_staged", parts_of(realm))
    if realm.agent is None:
        await change.db.run("erase_staged_talks", parts_of(realm))
    record_id = change.record(events.REALM_ERASED, realm, **erased.record)
    result = erased.received(record_id or events.new_record_id())
    return Removed(replace(result, pending=result.anything), audiences)


async def erase(
    change: Change, realm: RealmKey, *, cascade: bool = False
) -> tuple[Erased, frozenset[int]]:
    """Remove memories, conversations and working state that the realm covers.

    A memory outside the realm that one inside had replaced is current again; with `cascade`,
    what was derived from the realm's memories and messages alone goes too.
    """
    db, parts = change.db, parts_of(realm)
    await db.all("lock_audiences", parts)  # in one order, before anything changes
    beside = await Cascade.of(db, realm) if cascade else Cascade(realm)
    if cascade:
        await beside.unlink(db)
    entries = await _hand_back(change, realm)
    entries += [Place(*row) for row in await db.all("erase_memories", parts)]
    derived = await beside.fell(change)
    messages: list[Row] = []
    talks: list[Row] = []
    states = 0
    if realm.agent is None:  # conversations and runs belong to no agent
        messages = await db.all("erase_messages", parts)
        talks = await db.all("erase_conversations", parts)
        await _end_service(change, talks)
        states = await db.run("erase_working", parts)
    touched = frozenset(row[0] for row in (*entries, *derived, *messages, *talks))
    await _leave(change, touched)
    erased = Erased.of(
        entries=[place.name for place in entries],
        derived=[place.name for place in derived],
        sessions=[row[2] for row in talks],
        messages=[row[1] for row in messages],
        working_states=states,
    )
    return erased, touched


async def sweep(change: Change, realm: RealmKey) -> tuple[int, frozenset[int]]:
    """Remove what the realm holds beyond its time; what that had replaced stays closed."""
    await change.db.all("lock_audiences", parts_of(realm))
    values = {**parts_of(realm), "now": micros(change.now)}
    gone = [Place(*row) for row in await change.db.all("sweep_memories", values)]
    touched = frozenset(place.audience for place in gone)
    if gone:
        await _leave(change, touched)
        change.record_ids(events.MEMORIES_SWEPT, realm, [place.name for place in gone])
    return len(gone), touched


async def _end_service(change: Change, talks: Iterable[Row]) -> None:
    """Leases and keyed requests end with their conversations."""
    ended = {"talks": [digest_of_parts(*row[1:]) for row in talks]}
    await change.db.run("end_leases", ended)
    await change.db.run("end_requests", ended)


async def _leave(change: Change, audiences: frozenset[int]) -> None:
    """Count the removals in these audiences, and drop those that are empty now."""
    touched = {"audiences": sorted(audiences)}
    await change.db.run("count_removals", touched)
    await change.db.run("forget_audiences", touched)


async def _hand_back(change: Change, realm: RealmKey) -> list[Place]:
    """Delete what replaces rows that stay, and what replaces those: where these were.

    Each is taken from its succession once a row that stays is before it, and not otherwise.
    """
    rows = await change.db.all("replacements_in_realm", parts_of(realm))
    kept = {Place(audience, name) for audience, _, name in rows if name is not None}
    places = list(dict.fromkeys(Place(audience, name) for audience, name, _ in rows))
    if not places:
        return []
    removal = await Removal.of(change, places)
    current = list(dict.fromkeys(Place(row[0], row[1]) for row in rows if row[2] is not None))
    while current:
        changed = [pair for pair in map(removal.delete, current) if pair is not None]
        current = list(dict.fromkeys(follower for place, follower in changed if place in kept))
    await removal.write()
    return places
