"""Writing an export: all of it as of one snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, BinaryIO

from muniment.domain.realm import RealmKey
from muniment.stores.postgres.realms import parts_of
from muniment.stores.postgres.session import Session
from muniment.stores.rows import memory_of, message_of
from muniment.stores.transfer import exported, header_line, json_line
from muniment.stores.transfer_talks import exported_message, exported_session

_PAGE = 500


async def write_export(db: Session, realm: RealmKey, stream: BinaryIO, *, talks: bool) -> int:
    """Header, entries, and with `talks` sessions and messages; answers the count of entries."""
    count = await _count(db, "count_entries", realm)
    talks = talks and realm.agent is None  # conversations belong to no agent
    spoken = 0
    for name in ("count_sessions", "count_messages") if talks else ():
        spoken += await _count(db, name, realm)
    stream.write(header_line(count, spoken if talks else None))
    after = 0
    while rows := await db.all("export_entries", {**parts_of(realm), "after": after, **_MOST}):
        stream.writelines(json_line(exported(memory_of(row[1:]))) for row in rows)
        after = rows[-1][0]
    if talks:
        async for line in _talks(db, realm):
            stream.write(json_line(line))
    return count


_MOST = {"limit": _PAGE}


async def _count(db: Session, name: str, realm: RealmKey) -> int:
    row = await db.one(name, parts_of(realm))
    return 0 if row is None else int(row[0])


async def _talks(db: Session, realm: RealmKey) -> AsyncIterator[dict[str, Any]]:
    for audience, number, user, session, kind, title in await db.all(
        "export_sessions", parts_of(realm)
    ):
        yield exported_session(realm.tenant, user, session, kind=kind, title=title)
        place = {"audience": audience, "conversation": number, **_MOST}
        after = 0
        while rows := await db.all("export_messages", {**place, "after": after}):
            for row in rows:
                yield exported_message(message_of(row[1:]))
            after = rows[-1][0]
