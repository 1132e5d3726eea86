"""Writing an export: all of it as of one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import apsw

from muniment.domain.realm import RealmKey
from muniment.stores.rows import Row, memory_of, message_of
from muniment.stores.sqlite.realms import parts_of
from muniment.stores.sqlite.statements import SQL, covered
from muniment.stores.transfer import exported, header_line, json_line
from muniment.stores.transfer_talks import exported_message, exported_session


def write_export(db: apsw.Connection, realm: RealmKey, stream: BinaryIO, *, talks: bool) -> int:
    """Header, entries, and with `talks` sessions and messages; answers the count of entries."""
    values = {**parts_of(realm), "after": 0, "limit": -1}
    count = _count(db, "count_entries", realm)
    talks = talks and realm.agent is None  # conversations belong to no agent
    spoken = _count(db, "count_sessions", realm) + _count(db, "count_messages", realm)
    stream.write(header_line(count, spoken if talks else None))
    for row in db.execute(covered("export_entries", realm), values):
        stream.write(json_line(exported(memory_of(row[1:]))))
    if talks:
        stream.writelines(map(json_line, _talks(db, realm)))
    return count


def _count(db: apsw.Connection, name: str, realm: RealmKey) -> int:
    figure: Any = db.execute(covered(name, realm), parts_of(realm)).get
    return 0 if figure is None else figure


def _talks(db: apsw.Connection, realm: RealmKey) -> Iterator[dict[str, Any]]:
    sessions: list[Row] = db.execute(covered("export_sessions", realm), parts_of(realm)).fetchall()
    for number, tenant, user, session, kind, title in sessions:
        yield exported_session(tenant, user, session, kind=kind, title=title)
        for row in db.execute(SQL["messages_from"], (number, 0, -1)):
            yield exported_message(message_of(row))
