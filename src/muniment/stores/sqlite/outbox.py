"""Audit records on their way to the log: durable with their change, appended after it."""

from __future__ import annotations

import json

import apsw

from muniment.governance.audit_record import AuditEntry
from muniment.stores.sqlite.statements import SQL


def put(db: apsw.Connection, entry: AuditEntry) -> None:
    """Keep a record in the transaction of its change."""
    data = json.dumps(entry.data, separators=(",", ":"))
    db.execute(SQL["put_outbox"], (entry.id, entry.time, entry.event, entry.realm, data))
