"""The plan of each hot statement among 100,000 rows of 200 tenants: its own rows by an index."""

# ruff: noqa: S608 - the statement that fills the tables is made of numbers.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import ClientCursor

from muniment.domain.visibility import message_audience
from muniment.stores.postgres.audiences import digest_of
from muniment.stores.postgres.statements import SQL
from muniment.testing.kit import person
from tests.servers.databases import DATABASES, execute, name_of, owner_url

TENANTS, ROWS = 200, 100_000
TENANT = "tenant-7"
_MEMORIES = digest_of(f'["user", "{TENANT}", "ana"]')
_MESSAGES = digest_of(message_audience(TENANT, "ana"))
_FILL = f"""
    SET search_path = muniment, public;
    INSERT INTO audience (tenant_id, id, digest, key, messages, shared, user_id, version)
    SELECT 'tenant-' || t, t * 2 + m, sha256(convert_to(
            CASE m WHEN 0 THEN '["user", "tenant-' || t || '", "ana"]'
            ELSE '["messages", "tenant-' || t || '", "ana"]' END, 'UTF8')),
        'k', m = 1, false, 'ana', 1000
    FROM generate_series(1, {TENANTS}) t, generate_series(0, 1) m;
    INSERT INTO memory (tenant_id, audience, seq, changed, memory_id, scope, memory_type,
        user_id, content, metadata, importance, created_at, updated_at, source_message_ids,
        derived_from, entity_ids, digest, trust, terms, marks, length, tokens)
    SELECT 'tenant-' || t, t * 2, n, n / {TENANTS}, 'm' || n, 'user', 'fact', 'ana',
        'a text of usual length that says what somebody likes', '{{}}', 0.5, n, n, '[]', '[]',
        '[]', md5(n::text), 0, ''::bytea, 0, 8, 18
    FROM (SELECT n, n % {TENANTS} + 1 AS t FROM generate_series(1, {ROWS}) n) rows;
    INSERT INTO derivation (tenant_id, derived, source)
    SELECT 'tenant-' || (n % {TENANTS} + 1), n + {TENANTS}, n
    FROM generate_series(1, {ROWS} - {TENANTS}) n;
    INSERT INTO conversation (tenant_id, audience, id, user_id, session_id, kind, created_at)
    SELECT 'tenant-' || t, t * 2 + 1, s, 'ana', 's' || s, 'chat', s
    FROM generate_series(1, {TENANTS}) t, generate_series(1, 20) s;
    INSERT INTO message (tenant_id, audience, seq, changed, conversation, message_id, arrived_at,
        role, content, created_at, partial, terms, marks, length)
    SELECT 'tenant-' || t, t * 2 + 1, 100 + n, 100 + n, n % 20 + 1, 'g' || n, n, 'user',
        'a message of usual length', n, 0, ''::bytea, 0, 5
    FROM generate_series(1, {TENANTS}) t, generate_series(1, 100) n;
    INSERT INTO working (tenant_id, owner, user_id, session_id, state, expires_at)
    SELECT 'tenant-' || t, sha256(n::text::bytea), 'ana', 's1', '{{}}', 1000000 + n
    FROM generate_series(1, {TENANTS}) t, generate_series(1, 100) n;
    ANALYZE audience, memory, derivation, conversation, message, working;
"""
_INSTANTS = {"now": 5, "at": 5, "any_time": False, "trust": 0}
_REALM = {"subject": "ana", "agent": None, "session": None}
_MINE = {"digests": [_MEMORIES], "everyone": False}
_TALK = {"digest": _MESSAGES, "session": "s3"}
_PLACE = {"audience": 15, "conversation": 3}
_AUDIENCE = {"place": TENANT, "audience": 14, "version": 480, "seq": 0, "limit": 4000}

# Each hot statement with what it is asked in practice.
HOT: dict[str, dict[str, Any]] = {
    "audiences": _MINE,
    "memory_changed": _AUDIENCE,
    "message_changed": {**_AUDIENCE, "audience": 15, "version": 190},
    "hydrate_memories": {
        **_INSTANTS, "places": [TENANT], "which": "{1,1,1}", "audiences": "{14}",
        "seqs": "{6,206,406}",
    },
    "hydrate_messages": {"audience": 15, "seqs": [101, 105], "session": None, "said_until": 99_999},
    "message_seqs": {**_TALK, "ids": ["g1", "g21"]},
    "get_memory": {**_MINE, "memory_id": "m6", "now": 5},
    "memory_place": {**_MINE, "memory_id": "m6", "now": 5},
    "list_memories": {**_MINE, **_INSTANTS, "types": None, "limit": 20},
    "visible_sources": {**_MINE, "ids": ["m6"], "now": 5},
    "same_content": {"audience": 14, "digest": "d"},
    "predecessor": {"audience": 14, "memory_id": "m6"},
    "predecessors": {"audiences": [14], "names": ["m6"]},
    "same_contents": {"audiences": [14], "names": ["d"]},
    "visible_chain": {**_MINE, "audience": 14, "value": "m6", "now": 5},
    "conversation": _TALK,
    "recent_messages": {**_PLACE, "before": 1 << 60, "limit": 20},
    "messages_from": {**_PLACE, "after": 150, "limit": 20},
    "held_messages": {**_PLACE, "ids": ["g2"]},
    "list_conversations": {
        "digest": _MESSAGES, "snapshot": 9999, "activity": 1 << 60, "kind": None, "limit": 21,
    },
    "get_working": {"owner": b"o", "now": 5},
    "sweep_working": {"now": 5},
    "realm_stamp": _REALM,
    "realm_changed": {**_REALM, "audience": 14, "changed": 480},
    "realm_entries": {**_REALM, "id": "m6"},
    "hydrate_entries": {
        **_REALM, **_INSTANTS, "seqs": [6, 206], "kinds": ["fact"], "expired": False,
        "superseded": False,
    },
    "covered_by_memory_id": {**_REALM, "value": "m6"},
    "covered_chain": {**_REALM, "audience": 14, "value": "m6"},
    "links_from": {**_REALM, "seqs": [6]},
    "tenant_totals": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def filled() -> Iterator[psycopg.Connection[Any]]:
    url = DATABASES.lend()
    execute(owner_url(name_of(url)), _FILL)
    with psycopg.connect(url, autocommit=True, cursor_factory=ClientCursor) as connection:
        connection.execute("SET search_path = muniment, public")
        connection.execute("SET ROLE muniment_app")
        connection.execute("SELECT set_config('muniment.tenant', %s, false)", (TENANT,))
        yield connection
    DATABASES.lose(url)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_reads_its_own_rows_by_an_index(
    name: str, filled: psycopg.Connection[Any]
) -> None:
    query = b"EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[name]
    cursor = filled.execute(query, {**HOT[name], "tenant": TENANT})
    row = cursor.fetchone()
    assert row is not None
    nodes = list(_nodes(row[0][0]["Plan"]))
    scans = [node for node in nodes if node.get("Relation Name")]
    assert [node["Relation Name"] for node in scans if node["Node Type"] == "Seq Scan"] == []
    for node in nodes:
        if "Index Name" in node:
            assert "tenant_id" in node.get("Index Cond", ""), node["Index Name"]
        read = node.get("Rows Removed by Filter", 0) * node.get("Actual Loops", 1)
        assert read <= ROWS / TENANTS, f"{node['Node Type']} looked at foreign rows"


def test_a_recall_reads_no_more_rows_than_it_answers(filled: psycopg.Connection[Any]) -> None:
    query = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + SQL["hydrate_memories"]
    row = filled.execute(query, {**HOT["hydrate_memories"], "tenant": TENANT}).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 40


def test_saving_finds_its_row_by_the_key(filled: psycopg.Connection[Any]) -> None:
    values = dict.fromkeys(_parameters("save_memory"))
    values |= {"audience": 14, "memory_id": "m6"}
    query = b"EXPLAIN (FORMAT JSON) " + SQL["save_memory"]
    row = filled.execute(query, {**values, "tenant": TENANT}).fetchone()
    assert row is not None
    nodes = list(_nodes(row[0][0]["Plan"]))
    arbiters = [node["Conflict Arbiter Indexes"] for node in nodes
                if "Conflict Arbiter Indexes" in node]  # fmt: skip
    assert arbiters == [["memory_tenant_id_audience_memory_id_key"]]
    assert [node for node in nodes if node["Node Type"] == "Seq Scan"] == []


def _parameters(name: str) -> set[str]:
    return {part.split(")s")[0] for part in SQL[name].decode().split("%(")[1:]}


def test_the_owner_of_this_test_is_bound_by_row_security(
    filled: psycopg.Connection[Any],
) -> None:
    assert person().tenant_id != TENANT
    (count,) = filled.execute("SELECT count(DISTINCT tenant_id) FROM memory").fetchone() or (0,)
    assert count == 1
