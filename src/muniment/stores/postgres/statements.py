"""The named statements of `sql/queries.sql`, their shared parts filled in."""

from __future__ import annotations

import re
from importlib import resources

MEMORY_COLUMNS = (
    "memory_id, scope, memory_type, tenant_id, project_id, user_id, principal_id, session_id,"
    " run_id, agent_id, content, metadata, importance, created_at, updated_at, expires_at,"
    " valid_from, invalid_at, superseded_by, source_session_id, source_message_ids,"
    " derived_from, entity_ids, content_hash, trust, source"
)
MESSAGE_COLUMNS = (
    "message_id, role, content, created_at, token_count, tool_calls_json, tool_call_id,"
    " citations_json, run_id, partial, name"
)
_OWN = "a.tenant_id = %(tenant)s AND a.digest = ANY(%(digests)s::bytea[])"
_HEAD = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _qualified(columns: str) -> str:
    return ", ".join(f"m.{column}" for column in columns.split(", "))


def _where(table: str, **columns: str) -> str:
    """The rows of a realm; a part that is not named selects everything."""
    parts = [f"{table}.tenant_id = %(tenant)s"]
    for part, column in columns.items():
        given = f"%({part})s::text"
        parts.append(f"({given} IS NULL OR {table}.{column} = {given})")
    return " AND ".join(parts)


_PARTS = {
    "{memory}": MEMORY_COLUMNS,
    "{message}": MESSAGE_COLUMNS,
    "{m.memory}": _qualified(MEMORY_COLUMNS),
    "{m.message}": _qualified(MESSAGE_COLUMNS),
    "{own}": f"({_OWN})",
    "{visible}": f"(({_OWN}) OR (%(everyone)s AND a.shared))",
    "{covered}": _where("m", subject="user_id", agent="agent_id", session="realm_session"),
    "{heard}": _where("m", subject="user_id") + " AND %(agent)s::text IS NULL"
    " AND m.source_session_id = %(session)s::text"
    " AND m.realm_session IS DISTINCT FROM %(session)s::text",
    "{audiences}": "a.tenant_id = %(tenant)s AND NOT a.messages AND"
    " (%(subject)s::text IS NULL OR a.user_id = %(subject)s::text OR a.user_id IS NULL)",
    "{staged}": "tenant_id = %(tenant)s AND import = %(import)s",
    "{s.staged}": "s.tenant_id = %(tenant)s AND s.import = %(import)s",
    "{talks}": _where("c", subject="user_id", session="session_id"),
}


def _load() -> dict[str, bytes]:
    folder = resources.files("muniment.stores.postgres") / "sql"
    texts = (path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".sql"))
    parts = [part for text in texts for part in _HEAD.split(text)[1:]]
    return {name: _filled(part) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def _filled(statement: str) -> bytes:
    for mark, part in _PARTS.items():
        statement = statement.replace(mark, part)
    return statement.strip().encode()


SQL = _load()
