"""The named statements of the files in `sql/`."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from muniment.domain.realm import RealmKey
from muniment.stores.rows import MEMORY_COLUMNS, MESSAGE_COLUMNS, ROW_COLUMNS

_HEAD = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _load() -> dict[str, str]:
    folder = resources.files("muniment.stores.sqlite") / "sql"
    texts = (path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".sql"))
    parts = [part for text in texts for part in _HEAD.split(text)[1:]]
    return {name: _filled(part) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def _filled(statement: str) -> str:
    """The statement with its lists of columns."""
    row = len(ROW_COLUMNS.split(", "))
    qualified = ", ".join(f"m.{column}" for column in MESSAGE_COLUMNS.split(", "))
    return (
        statement.strip()
        .replace("{memory}", MEMORY_COLUMNS)
        .replace("{row}", ROW_COLUMNS)
        .replace("{row from 4}", ", ".join(f"?{number}" for number in range(4, 4 + row)))
        .replace("{message}", MESSAGE_COLUMNS)
        .replace("{m.message}", qualified)
    )


SQL = _load()

_PARTS = {
    "tenant": "tenant = :tenant",
    "subject": "user = :subject",
    "agent": "agent = :agent",
    "session": "realm_session = :session",
}


_TALK_PARTS = {
    "tenant": "tenant = :tenant",
    "subject": "user = :subject",
    "session": "session = :session",
}
_NOBODYS = "tenant IS NULL"
_AUDIENCES = {
    False: f"tenant = :tenant OR {_NOBODYS}",
    True: f"(tenant = :tenant AND user = :subject) OR (tenant = :tenant AND user IS NULL)"
    f" OR {_NOBODYS}",
}


def covered(name: str, realm: RealmKey) -> str:
    """The statement with ``{realm}`` as the condition on the parts that `realm` sets.

    The others are left out rather than passed over, so that the index on the user is used.
    ``{talks}`` is that on a conversation's rows; ``{audiences}`` are those that may hold rows
    of the realm.
    """
    return _covered(name, tuple(part for part in _PARTS if getattr(realm, part) is not None))


@cache
def _covered(name: str, parts: tuple[str, ...]) -> str:
    condition = " AND ".join(_PARTS[part] for part in parts)
    talks = " AND ".join(_TALK_PARTS[part] for part in parts if part in _TALK_PARTS)
    statement = SQL[name].replace("{realm}", condition).replace("{talks}", talks)
    return statement.replace("{audiences}", _AUDIENCES["subject" in parts])
