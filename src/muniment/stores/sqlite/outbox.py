"""Audit records on their way to the log: durable with their change, appended after it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any

import apsw

from muniment.errors import AuditError, MemoryStoreError
from muniment.governance import events
from muniment.governance.audit import BEGINNING, AuditLog, HeldLog
from muniment.governance.audit_anchor import Anchor
from muniment.governance.audit_record import AuditEntry
from muniment.governance.events import Records
from muniment.stores.sqlite.errors import store_errors
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.statements import SQL

_ANCHOR = "audit_anchor"
_AT_ONCE = 256
_IDS_SHOWN = 10
_log = logging.getLogger("muniment.audit")


class Outbox:
    """One file's way to its log. Everything runs on the thread that writes.

    The lock of the log is taken outside of transactions only, and the file's write lock while it
    is held: so no two processes wait for each other. The file keeps an anchor, moved together
    with the removal of what was appended: only records after it can be of waiting entries.
    """

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._continued = False  # the log was found to continue from the file's anchor
        self._floor = BEGINNING  # the log's tail before the first of `_own` was put
        self._own: set[str] = set()

    def put(self, db: apsw.Connection, entry: AuditEntry) -> None:
        """Keep an entry in the transaction of its change."""
        data = json.dumps(entry.data, separators=(",", ":"))
        db.execute(SQL["put_outbox"], (entry.id, entry.time, entry.event, entry.realm, data))
        self._own.add(entry.id)

    def open(self, db: apsw.Connection) -> None:
        """Drain what an earlier process left; a WARNING where the log is unfit."""
        error = self.fault(db)
        if error is not None:
            _log.warning("the store can be read and erased from, not written to: %s", error)
        elif count(db):
            self.drain(db)

    def fault(self, db: apsw.Connection) -> AuditError | None:
        """Why the log could take no record now; None where it can."""
        error = self._unfit(db)
        # What waits may complete the line that a killed process left torn; and a log that is
        # sound, but took no record after the last change, is asked again before the next one.
        if self._own or (error is not None and _ids(db)):
            stopped = self._drained(db)
            error = self._unfit(db) if stopped is None else error or AuditError(str(stopped))
        return error

    def drain(self, db: apsw.Connection) -> bool:
        """Append what waits and remove it here; False, with a WARNING, where that fails."""
        error = self._drained(db)
        if error is not None:
            _log.warning("audit records wait in the outbox (%s): %s", error, _ids(db))
        return error is None

    def reach(self, db: apsw.Connection) -> tuple[Anchor, int]:
        """Drain; the file's anchor, and how many entries still wait."""
        self.drain(db)
        return anchor(db), count(db)

    def restart(self, db: apsw.Connection, now: datetime) -> bool:
        """Go on with the log as it is now; False where it continues from the anchor anyway.

        What waits goes into it, and then a record of the anchor that was given up.
        """
        before, accepted = BEGINNING, self._log.accept()
        with suppress(AuditError):  # a damaged anchor is given up too, whatever it said
            before = anchor(db)
        self._continued = False
        if self._unfit(db) is None:
            return False
        self._own.clear()
        given_up = {"records": before.tail.records, "last_hash": before.tail.last_hash}
        with _transaction(db):
            Records(partial(self.put, db), now).record(events.AUDIT_RESTARTED, None, **given_up)
            db.execute(SQL["record_setting"], (_ANCHOR, accepted.to_text()))
        self.drain(db)
        return True

    def settle(self, db: apsw.Connection) -> None:
        """Drain after a commit, where a job put anything."""
        if self._own:
            self.drain(db)

    def _unfit(self, db: apsw.Connection) -> AuditError | None:
        try:
            with store_errors():
                since = BEGINNING if self._continued else anchor(db)
            self._log.require_sound(since)
        except (AuditError, MemoryStoreError) as error:
            return AuditError(str(error))
        self._continued = True
        if not self._own:
            self._floor = self._log.vouched
        return None

    def _drained(self, db: apsw.Connection) -> Exception | None:
        try:
            with store_errors(), self._log.held() as log:
                size = _AT_ONCE
                while size == _AT_ONCE:
                    entries = waiting(db, _AT_ONCE)
                    size = len(entries)
                    if entries:
                        self._move(db, log, entries)
        except (AuditError, MemoryStoreError, ValueError) as error:
            return error  # the change is made, whatever is wrong here: its record waits
        self._own.clear()
        return None

    def _move(self, db: apsw.Connection, log: HeldLog, entries: dict[int, AuditEntry]) -> None:
        ours = all(entry.id in self._own for entry in entries.values())
        since = self._floor if ours and self._continued else anchor(db)
        self._mark(db, entries, log.append(list(entries.values()), since=since))

    def _mark(self, db: apsw.Connection, entries: dict[int, AuditEntry], reached: Anchor) -> None:
        """Remove what is in the log, and move the anchor behind it."""
        with _not_synced(db), _transaction(db):
            db.execute(SQL["take_outbox"], (json_list(list(entries)),))
            db.execute(SQL["record_setting"], (_ANCHOR, reached.to_text()))


def warn_without_log(db: apsw.Connection) -> None:
    """Say so where a file that has a log is opened without one."""
    if db.execute(SQL["setting"], (_ANCHOR,)).fetchone() is not None or count(db):
        _log.warning(
            "the file has an audit log and is open without it: changes are not recorded unless "
            "audit= or MUNIMENT_AUDIT_PATH names it"
        )


def _ids(db: apsw.Connection) -> str:
    """The first of the ids that wait; none where the file cannot be read."""
    try:
        return ", ".join(str(row[0]) for row in db.execute(SQL["outbox_ids"], (_IDS_SHOWN,)))
    except apsw.Error:  # the thread that writes must not end with it: others wait for answers
        return ""


def count(db: apsw.Connection) -> int:
    """How many entries wait."""
    return int(db.execute(SQL["count_outbox"]).get)


def waiting(db: apsw.Connection, limit: int) -> dict[int, AuditEntry]:
    """The oldest entries by their place in the outbox."""
    rows: list[Any] = db.execute(SQL["waiting_outbox"], (limit,)).fetchall()
    return {row[0]: _entry(*row[1:]) for row in rows}


def _entry(record_id: str, at: str, event: str, realm: str | None, data: str) -> AuditEntry:
    return AuditEntry(record_id, at, event, realm, json.loads(data))


def anchor(db: apsw.Connection) -> Anchor:
    """How far the log was vouched for when this file's outbox was last drained."""
    row = db.execute(SQL["setting"], (_ANCHOR,)).fetchone()
    return Anchor.of_text(None if row is None else row[0])


@contextmanager
def _transaction(db: apsw.Connection) -> Iterator[None]:
    try:  # whoever writes may be interrupted after the first statement too
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def _not_synced(db: apsw.Connection) -> Iterator[None]:
    """Commit without waiting for the disk: an entry that returns is found in the log again."""
    level = int(db.execute("PRAGMA synchronous").get)
    db.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        db.execute(f"PRAGMA synchronous = {level}")
