"""The named statements: each is one valid statement on the schema, and each is used."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

import muniment.stores.sqlite
from muniment.domain.realm import RealmKey
from muniment.stores.sqlite.migrate import migrate
from muniment.stores.sqlite.statements import SQL, covered

_FOLDER = Path(muniment.stores.sqlite.__file__).parent
_BUILT = re.compile(r'(?:SQL\[|covered\()f"([^"]+)"')
_FILLED = re.compile(r"\\\{\w+\\\}")


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    made = apsw.Connection(":memory:")
    migrate(made)
    return made


@pytest.mark.parametrize("name", SQL)
def test_a_statement_is_one_and_valid(name: str, connection: apsw.Connection) -> None:
    assert SQL[name].count(";") == 1
    assert SQL[name].endswith(";")
    statement = covered(name, RealmKey("tenant", "subject", "agent", "session"))
    connection.execute(f"EXPLAIN {statement}", _NoValues() if ":" in statement else _nulls(name))


class _NoValues(dict[str, None]):
    def __missing__(self, key: str) -> None:
        return None


def _nulls(name: str) -> tuple[None, ...]:
    numbers = re.findall(r"\?(\d*)", SQL[name])
    return (None,) * max(numbers.count(""), *map(int, filter(None, numbers)), 0)


def test_every_statement_is_used() -> None:
    source = "\n".join(path.read_text("utf-8") for path in _FOLDER.glob("*.py"))
    used = {name for name in SQL if f'"{name}"' in source}
    for built in _BUILT.findall(source):
        names = re.compile(_FILLED.sub(r"\\w+", re.escape(built)))
        used |= {name for name in SQL if names.fullmatch(name)}
    assert set(SQL) - used == set()


def test_new_rows_of_memories_have_the_one_trigger_that_an_import_does_without(
    connection: apsw.Connection,
) -> None:
    triggers = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'memory'"
        " AND sql LIKE '%INSERT ON memory%'"
    ).fetchall()
    assert triggers == [("memory_counted",)]  # the import counts its rows itself
