"""The named statements of `sql/queries.sql`."""

from __future__ import annotations

import re
from importlib import resources

from muniment.stores.sqlite.rows import MEMORY_COLUMNS, MESSAGE_COLUMNS

_HEAD = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _load() -> dict[str, str]:
    text = (resources.files("muniment.stores.sqlite") / "sql" / "queries.sql").read_text("utf-8")
    parts = _HEAD.split(text)
    return {name: _filled(part) for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def _filled(statement: str) -> str:
    """The statement with its lists of columns."""
    qualified = ", ".join(f"m.{column}" for column in MESSAGE_COLUMNS.split(", "))
    return (
        statement.strip()
        .replace("{memory}", MEMORY_COLUMNS)
        .replace("{message}", MESSAGE_COLUMNS)
        .replace("{m.message}", qualified)
    )


SQL = _load()
