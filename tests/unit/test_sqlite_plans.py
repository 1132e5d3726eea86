"""How SQLite looks for a realm's rows: never by way of anybody else's."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from muniment.domain.realm import RealmKey
from muniment.stores.sqlite.migrate import migrate
from muniment.stores.sqlite.realms import parts_of
from muniment.stores.sqlite.statements import covered

SUBJECT = RealmKey("acme", "ana")
MORE: dict[str, Any] = {
    "audience": 1, "changed": 0, "id": "x", "seqs": "[]", "kinds": "[]", "trust": 0, "now": 0,
    "expired": 0, "superseded": 0, "after": 0, "limit": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "realm", "expected"),
    [
        ("realm_changed", SUBJECT, "(tenant=? AND user=? AND audience=? AND changed>?)"),
        ("realm_keys", SUBJECT, "memory_realm (tenant=? AND user=? AND audience=?)"),
        ("realm_entries", SUBJECT, "memory_name (memory_id=?)"),
        ("hydrate_entries", SUBJECT, "USING INTEGER PRIMARY KEY (rowid=?)"),
        ("count_entries", SUBJECT, "memory_realm (tenant=? AND user=?)"),
        ("realm_stamp", SUBJECT, "audience_realm (tenant=? AND user=?)"),
        ("realm_stamp", RealmKey("acme"), "audience_realm (tenant=?)"),
        ("realm_changed", RealmKey("acme"), "(audience=? AND changed>?)"),
    ],
)  # fmt: skip
def test_a_statement_by_realm_takes_the_index(name: str, realm: RealmKey, expected: str) -> None:
    connection = apsw.Connection(":memory:")
    migrate(connection)
    statement = covered(name, realm)
    values = {**parts_of(realm), **MORE}
    plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert any(expected in step for step in plan), plan
    assert not any(step == "SCAN memory" or step == "SCAN audience" for step in plan), plan
