"""PostgreSQL's named statements: valid on the schema, used, and named as SQLite's are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import muniment.stores.postgres
from muniment.stores.postgres.statements import SQL
from muniment.stores.sqlite.statements import SQL as SQLITE
from tests.servers.databases import DATABASES, name_of, owner_url

_FOLDER = Path(muniment.stores.postgres.__file__).parent
_PARTS = re.compile(r'"(\w*)_?\{\w+\}_?(\w*)"')

# What one engine needs and the other does not.
ONLY_SQLITE = {
    "new_audience", "staged_audiences",  # an upsert does it in PostgreSQL
    "insert_memory",  # PostgreSQL's upsert is one statement for both
    "count_published",  # a trigger for each statement does it
    "others_staged", "clear_staged", "stale_staged",
    "others_staged_talks", "clear_staged_talks", "stale_staged_talks",
    "clear_setting", "forget_setting",
    "delete_memory",  # PostgreSQL deletes many at once
    "visible_by_superseded_by", "covered_by_superseded_by",  # a chain is one round trip there
}  # fmt: skip
ONLY_POSTGRES = {
    "lock_audiences", "lock_places", "lock_audit", "lock_quota",  # SQLite has one writer
    "end_leases", "end_requests",  # triggers do it in SQLite
    "next_tenant", "next_audited",  # row-level security shows one tenant at a time
    "add_audit", "audit_lines", "last_audit",
    "delete_memories", "predecessors", "same_contents", "reopen_memories",  # one trip for many
    "visible_chain", "covered_chain",
    "export_messages",  # in pages: SQLite reads on while it writes
}  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection[Any]]:
    url = owner_url(name_of(DATABASES.lend()))
    with psycopg.connect(url, autocommit=True) as made:
        made.execute("SET search_path = muniment, public")
        yield made


@pytest.mark.parametrize("name", SQL)
def test_a_statement_is_one_and_valid(name: str, connection: psycopg.Connection[Any]) -> None:
    statement = SQL[name].decode()
    assert statement.count(";") == 1
    assert statement.endswith(";")
    numbered = re.sub(r"%\((\w+)\)s", _Numbers(), statement)
    connection.execute(f"PREPARE checked AS {numbered}".encode())
    connection.execute("DEALLOCATE checked")


class _Numbers:
    """Named parameters as the numbers that PREPARE knows."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __call__(self, found: re.Match[str]) -> str:
        if found[1] not in self._names:
            self._names.append(found[1])
        return f"${self._names.index(found[1]) + 1}"


def test_every_statement_is_used() -> None:
    source = "\n".join(path.read_text("utf-8") for path in _FOLDER.glob("*.py"))
    used = {name for name in SQL if f'"{name}"' in source}
    for prefix, suffix in _PARTS.findall(source):
        used |= {name for name in SQL if suffix and name.endswith(f"_{suffix}")}
        used |= {name for name in SQL if prefix and name.startswith(prefix)}
    assert set(SQL) - used == set()


def test_both_dialects_name_their_statements_alike() -> None:
    assert set(SQL) - set(SQLITE) == ONLY_POSTGRES
    only = {name for name in SQLITE if name not in SQL and "outbox" not in name}
    assert only == ONLY_SQLITE  # the log is a table in PostgreSQL, and needs no outbox


def test_every_statement_keeps_to_the_tenant() -> None:
    everybodys = {"setting", "record_setting", "forget_model", "sizes", "next_tenant",
                  "next_audited"}  # fmt: skip
    parameters = ("%(tenant)s", "%(place)s")
    open_ones = {
        name for name, text in SQL.items() if not any(p in text.decode() for p in parameters)
    }
    assert open_ones - everybodys == {"hydrate_memories"} & open_ones
