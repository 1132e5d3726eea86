"""Removing what a realm covers: all of it, or what its time is over for."""

from __future__ import annotations

from muniment.domain.realm import RealmKey
from muniment.governance import events
from muniment.stores.erasure import Erased, Removed
from muniment.stores.rows import Row, micros
from muniment.stores.sqlite.cascade import Cascade, Place
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.journal import promise
from muniment.stores.sqlite.realms import parts_of
from muniment.stores.sqlite.statements import SQL, covered
from muniment.stores.sqlite.writes import remove_memory


def erase_realm(change: Change, realm: RealmKey, *, cascade: bool) -> Removed:
    """`erase`, recorded as the erasure of the realm, its bytes to follow."""
    before = change.db.total_changes()
    erased, audiences = erase(change, realm, cascade=cascade)
    removed = change.db.total_changes() != before
    if realm == RealmKey(realm.tenant):
        change.db.execute(SQL["forget_served"], (realm.tenant,))
    record_id = change.record(events.REALM_ERASED, realm, **erased.record)
    if removed:
        promise(change.db)
    return Removed(erased.received(record_id or events.new_record_id()), audiences)


def erase(
    change: Change, realm: RealmKey, *, cascade: bool = False
) -> tuple[Erased, frozenset[int]]:
    """Remove memories, conversations and working state that the realm covers.

    A memory outside the realm that one inside had replaced is current again; with `cascade`,
    what was derived from the realm's memories and messages alone goes too.
    """
    db, parts = change.db, parts_of(realm)
    beside = Cascade.of(db, realm) if cascade else Cascade(realm)
    if cascade:
        beside.unlink(db)
    db.execute(covered("erase_staged", realm), parts)  # an import under way is then refused
    db.execute(covered("erase_staged_talks", realm), parts)
    entries = _hand_back(change, realm)
    entries += [Place(*row) for row in db.execute(covered("erase_memories", realm), parts)]
    derived = beside.fell(change)
    messages: list[Row] = []
    sessions: list[Row] = []
    states: list[Row] = []
    if realm.agent is None:  # conversations and runs belong to no agent
        messages = db.execute(SQL["erase_messages"], parts).fetchall()
        sessions = db.execute(SQL["erase_conversations"], parts).fetchall()
        states = db.execute(SQL["erase_working"], parts).fetchall()
    touched = frozenset(row[0] for row in (*entries, *derived, *messages))
    _leave(change, touched)
    erased = Erased.of(
        entries=[place.memory_id for place in entries],
        derived=[place.memory_id for place in derived],
        sessions=[row[0] for row in sessions],
        messages=[row[1] for row in messages],
        working_states=len(states),
    )
    return erased, touched


def sweep(change: Change, realm: RealmKey) -> tuple[int, frozenset[int]]:
    """Remove what the realm holds beyond its time; what that had replaced stays closed."""
    values = {**parts_of(realm), "now": micros(change.now)}
    gone = [Place(*row) for row in change.db.execute(covered("sweep_memories", realm), values)]
    touched = frozenset(place.audience for place in gone)
    if gone:
        _leave(change, touched)
        change.record_ids(events.MEMORIES_SWEPT, realm, [place.memory_id for place in gone])
    return len(gone), touched


def _leave(change: Change, audiences: frozenset[int]) -> None:
    """Count the removals in these audiences, and drop those that are empty now."""
    touched = json_list(sorted(audiences))
    change.db.execute(SQL["count_removals"], (touched,))
    change.db.execute(SQL["forget_audiences"], (touched,))


def _hand_back(change: Change, realm: RealmKey) -> list[Place]:
    """Delete the replacements of what stays, one by one; the places of those deleted."""
    gone: list[Place] = []
    find = covered("replacements_in_realm", realm)
    while rows := list(change.db.execute(find, parts_of(realm))):
        for place in dict.fromkeys(Place(*row) for row in rows):
            remove_memory(change, place.audience, place.memory_id)
            gone.append(place)
    return gone
