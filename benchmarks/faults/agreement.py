"""Do a file and its audit log say the same? The log is replayed and compared with the rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

from muniment.governance.audit import verify_audit_log

_ARRIVES = (
    "memory.saved",
    "memory.updated",
    "memory.reopened",
    "memory.superseded",
    "memories.imported",
)
_LEAVES = ("memory.deleted", "memories.swept")
_OF_A_REALM = ("realm.erased", "conversation.deleted")


def disagreements(database: Path, log: Path) -> list[str]:
    """What does not fit: a damaged log, repeated records, waiting ones, rows or sessions that
    only one side knows. Both are at rest, and no memory id is used twice."""
    verified = verify_audit_log(log)
    if not verified.ok:
        return [f"the log: {verified.error}"]
    faults: list[str] = []
    records = [json.loads(line) for line in log.read_bytes().splitlines()]
    ids = [record["data"].get("record_id") for record in records]
    if len(set(ids)) != len(ids):
        faults.append(f"{len(ids) - len(set(ids))} records are in the log twice")
    memories, sessions = _replayed(records)
    connection = apsw.Connection(str(database))
    try:
        waiting = int(connection.execute("SELECT count(*) FROM outbox").get)
        if waiting:
            faults.append(f"{waiting} records wait in the outbox")
        faults += _compared("memories", memories, _stored_memories(connection))
        faults += _compared("sessions", sessions, _stored_sessions(connection))
    finally:
        connection.close()
    return faults


def _compared(what: str, logged: set[Any], stored: set[Any]) -> list[str]:
    only = (len(logged - stored), len(stored - logged))
    return [f"{what}: {only[0]} in the log alone, {only[1]} in the file alone"] if any(only) else []


def _replayed(records: list[dict[str, Any]]) -> tuple[set[str], set[str]]:
    memories: dict[str, str] = {}
    sessions: set[str] = set()
    for record in records:
        event, realm, data = record["event"], record["realm"], record["data"]
        ids = data.get("memory_ids", [data.get("memory_id")])
        if event in _ARRIVES:
            memories.update(dict.fromkeys(ids, realm))
        elif event in _LEAVES:
            memories = {name: place for name, place in memories.items() if name not in ids}
        elif event in _OF_A_REALM:
            memories = {n: place for n, place in memories.items() if not _covers(realm, place)}
            sessions = {session for session in sessions if not _covers(realm, session)}
        elif event == "conversation.created":
            sessions.add(realm)
    return set(memories), sessions


def _covers(realm: str, other: str) -> bool:
    parts, others = (dict(part.split("=") for part in key.split("/")) for key in (realm, other))
    return all(others.get(name) == value for name, value in parts.items())


def _stored_memories(connection: apsw.Connection) -> set[str]:
    return {str(row[0]) for row in connection.execute("SELECT memory_id FROM memory")}


def _stored_sessions(connection: apsw.Connection) -> set[str]:
    rows: Any = connection.execute("SELECT tenant, user, session FROM conversation")
    return {f"tenant={tenant}/subject={user}/session={session}" for tenant, user, session in rows}
