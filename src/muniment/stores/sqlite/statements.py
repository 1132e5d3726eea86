"""The named statements of the files in `sql/`."""

from __future__ import annotations

import re
from importlib import resources

from muniment.stores.rows import MEMORY_COLUMNS, MESSAGE_COLUMNS

_HEAD = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _load() -> dict[str, str]:
    folder = resources.files("muniment.stores.sqlite") / "sql"
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    found: dict[str, str] = {}
    for file in files:
        parts = _HEAD.split(file.read_text("utf-8"))
        found |= {name: _filled(part) for name, part in zip(parts[1::2], parts[2::2], strict=True)}
    return found


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
