"""What `add` makes without the checks of a Memory is what a Memory would have checked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from muniment.domain.realm import RealmKey
from muniment.errors import InvalidEntryError
from muniment.governance.tokens import estimate_tokens
from muniment.stores.entries import new_entry
from muniment.stores.rows import ROW_COLUMNS, memory_row
from muniment.stores.sqlite.statements import SQL
from muniment.stores.sqlite.writes import written

NOW = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
GIVEN: dict[str, Any] = {
    "kind": "fact", "trust": "model", "source": "import:1", "importance": 1, "now": NOW,
    "expires_at": NOW + timedelta(days=1), "derived_from": ["mem_cafe\u0301", "b", "b"],
    "metadata": {"a": [1, {"b": None}]},
}  # fmt: skip


@pytest.mark.parametrize(
    "realm",
    [
        RealmKey("acme"),
        RealmKey("acme", "ana"),
        RealmKey("acme", None, "bot"),
        RealmKey("acme", "ana", "bot", "s1"),
    ],
)
def test_a_new_entry_passes_every_check_unchanged(realm: RealmKey) -> None:
    made = new_entry(realm, "Ana likes tea.", **GIVEN)
    assert replace(made) == made  # which checks every field
    assert made.created_at.tzinfo is UTC
    assert made.derived_from == ("mem_caf\u00e9", "b")
    assert (made.importance, type(made.importance)) == (1.0, float)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("now", datetime(2026, 1, 1), "created_at"),
        ("expires_at", NOW, "expires_at"),
        ("expires_at", "tomorrow", "expires_at"),
        ("derived_from", "abc", "derived_from"),
        ("derived_from", [1], "derived_from"),
        ("derived_from", [f"m{n}" for n in range(101)], "derived_from"),
        ("source", None, "source"),
        ("source", "two words", "source"),
        ("importance", True, "importance"),
        ("importance", 1.1, "importance"),
        ("metadata", {"a": object()}, "metadata"),
        ("kind", "working", "kind"),
        ("trust", "full", "trust"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_its_name(field: str, value: Any, named: str) -> None:
    with pytest.raises(InvalidEntryError, match=f"^{named}: "):
        new_entry(RealmKey("acme", "ana"), "text", **{**GIVEN, field: value})


def test_a_row_is_in_the_order_of_the_statement_that_inserts_it() -> None:
    memory = new_entry(RealmKey("acme", "ana"), "text", **GIVEN)
    names = tuple(written(memory, estimate_tokens))
    assert tuple(memory_row(memory)) == tuple(ROW_COLUMNS.split(", ")) == names[:27]
    listed = SQL["insert_memory"].partition("(")[2].partition(")")[0].replace("\n", " ")
    assert tuple(listed.replace("  ", "").split(", ")) == ("audience", "changed", "vector", *names)
