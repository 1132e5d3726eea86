"""The verbs by realm: what belongs to one, what falls with it, what its time is over for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muniment.domain.memory import MemoryType
from muniment.domain.owner import owner_user
from muniment.domain.realm import RealmKey, realm_of
from muniment.domain.working import WorkingKey
from muniment.governance.derivation import orphans
from muniment.governance.events import Records
from muniment.stores.erasure import Erased, ErasureResult
from muniment.stores.in_memory.tables import MemoryRow, Tables


def covered(tables: Tables, realm: RealmKey) -> list[MemoryRow]:
    """The memories that belong to `realm`."""
    return [row for row in tables.memories.values() if realm.covers(realm_of(row.memory))]


def erase(tables: Tables, change: Records, realm: RealmKey, *, cascade: bool) -> Erased:
    """Remove what belongs to `realm`; with `cascade` also what was derived from that alone."""
    entries = covered(tables, realm)
    derived = _fallen(tables, realm, entries) if cascade else []
    if cascade:
        _unlink(tables, realm, [*entries, *derived])
    for row in entries:
        tables.remove(tables.memories[row.audience, row.memory.memory_id])
    for row in derived:
        tables.delete(change, tables.memories[row.audience, row.memory.memory_id])
    gone = [each for each in tables.conversations.values() if realm.covers(each.realm)]
    messages = [name for each in gone for name in each.messages]
    for conversation in gone:
        tables.remove_conversation(conversation)
    return Erased.of(
        entries=_ids(entries),
        derived=_ids(derived),
        sessions=[conversation.identity.session_id for conversation in gone],
        messages=messages,
        working_states=_erase_working(tables, realm),
    )


def foreseen(tables: Tables, realm: RealmKey, *, cascade: bool) -> ErasureResult:
    """What `erase` would count."""
    entries = covered(tables, realm)
    gone = [each for each in tables.conversations.values() if realm.covers(each.realm)]
    return ErasureResult(
        entries=len(entries),
        derived=len(_fallen(tables, realm, entries)) if cascade else 0,
        sessions=len(gone),
        messages=sum(len(each.messages) for each in gone),
        working_states=len(_runs(tables, realm)),
    )


def sweep(tables: Tables, realm: RealmKey) -> list[str]:
    """Remove what `realm` holds beyond its time; what that had replaced stays closed."""
    now = tables.clock()
    over = [row for row in covered(tables, realm) if row.memory.is_expired_at(now)]
    for row in over:
        tables.drop(row)
    return _ids(over)


def _ids(rows: Iterable[MemoryRow]) -> list[str]:
    return [row.memory.memory_id for row in rows]


def _fallen(tables: Tables, realm: RealmKey, entries: list[MemoryRow]) -> list[MemoryRow]:
    """Rows outside `realm` that stand on nothing but what is erased."""
    erased = {row.order for row in entries}
    outside = {row.order: row for row in tables.memories.values() if row.order not in erased}
    heard = {order for order, row in outside.items() if _heard_in(row, realm)}
    cut = {order for order in heard if outside[order].memory.memory_type is MemoryType.SUMMARY}
    gone, reached = erased | cut, heard - cut
    upon: dict[int, list[int]] = {}
    for order, row in outside.items():
        for source in row.sources:
            upon.setdefault(source, []).append(order)
    found = [*gone, *reached]
    while found:
        fresh = set(upon.get(found.pop(), ())) - reached - cut
        reached |= fresh
        found += fresh
    graph = {order: outside[order].sources for order in reached}
    standing = {order for order in reached - heard if _has_messages(tables, outside[order])}
    return [outside[order] for order in sorted(cut | orphans(graph, gone, standing))]


def _heard_in(row: MemoryRow, realm: RealmKey) -> bool:
    """Its source messages are of a session that belongs to `realm`."""
    return bool(row.memory.source_message_ids) and _of_session(row, realm)


def _of_session(row: MemoryRow, realm: RealmKey) -> bool:
    memory = row.memory
    if memory.source_session_id is None:
        return False
    user = owner_user(memory.owner)
    session = RealmKey(memory.owner.tenant_id, user, None, memory.source_session_id)
    return realm.covers(session)


def _has_messages(tables: Tables, row: MemoryRow) -> bool:
    memory = row.memory
    key = (memory.owner.tenant_id, owner_user(memory.owner) or "", memory.source_session_id or "")
    conversation = tables.conversations.get(key)
    return conversation is not None and any(
        message_id in conversation.messages for message_id in memory.source_message_ids
    )


def _unlink(tables: Tables, realm: RealmKey, gone: list[MemoryRow]) -> None:
    """Let what stays name neither an erased memory nor an erased session as its source."""
    names = {row.order: row.memory.memory_id for row in gone}
    for row in list(tables.memories.values()):
        if row.order in names:
            continue
        lost = {names[order] for order in row.sources if order in names}
        memory = row.memory
        if lost:
            kept = tuple(name for name in memory.derived_from if name not in lost)
            memory = replace(memory, derived_from=kept)
        if _of_session(row, realm):
            memory = replace(memory, source_session_id=None, source_message_ids=())
        if memory is not row.memory:
            tables.replace(row, memory)


def _erase_working(tables: Tables, realm: RealmKey) -> int:
    gone = _runs(tables, realm)
    for run in gone:
        del tables.working[run]
    return len(gone)


def _runs(tables: Tables, realm: RealmKey) -> list[WorkingKey]:
    return [
        run
        for run in tables.working
        if realm.covers(RealmKey(run.tenant, run.user, None, run.session))
    ]
