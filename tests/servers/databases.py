"""Databases for tests: made once from a migrated template, emptied when they are lent again."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.servers import session

LOGIN = "muniment_test_login"
PASSWORD = "for tests only"  # a server that is not ours may ask for one
# Deleting is quicker than truncating while there is little to delete.
EMPTIED = """
    DELETE FROM muniment.message; DELETE FROM muniment.conversation;
    DELETE FROM muniment.memory; DELETE FROM muniment.audience;
    DELETE FROM muniment.working; DELETE FROM muniment.completion_lease;
    DELETE FROM muniment.keyed_request; DELETE FROM muniment.served;
    DELETE FROM muniment.audit; DELETE FROM muniment.staged;
    DELETE FROM muniment.staged_talk;
    DELETE FROM muniment.setting WHERE name LIKE 'embedding%'
"""


class Databases:
    """This process's databases. What was lent is free again once `returned` is called."""

    def __init__(self) -> None:
        self._free: list[str] = []
        self._lent: list[str] = []
        self._made = 0

    def lend(self) -> str:
        """The URL of an empty database of this version's schema, for the application's login."""
        name = self._free.pop() if self._free else self._make()
        self._lent.append(name)
        execute(owner_url(name), EMPTIED)
        return login_url(name)

    def give_back(self, url: str) -> None:
        """Take back one."""
        name = name_of(url)
        if name in self._lent:
            self._lent.remove(name)
            self._free.append(name)

    def lose(self, url: str) -> None:
        """Never lend this one again: its schema is damaged."""
        name = name_of(url)
        if name in self._lent:
            self._lent.remove(name)

    def returned(self) -> None:
        """Take back what was lent."""
        self._free += self._lent
        self._lent.clear()

    def _make(self) -> str:
        self._made += 1
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        name = f"{prefix()}_{worker}_{self._made}"
        with session.locked("databases"):
            create(name, template=_template())
        return name


def create(name: str, *, template: str = "template0") -> None:
    """A database of this name."""
    execute(
        owner_url(), sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template)
        ),
    )  # fmt: skip


def drop(name: str) -> None:
    """Remove a database, whoever is connected to it."""
    execute(
        owner_url(), sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    )


def drop_all() -> None:
    """Remove every database of this session, from a server that is not ours."""
    ours = f"{prefix()}_"
    with psycopg.connect(owner_url(), autocommit=True) as connection:
        rows = connection.execute("SELECT datname FROM pg_database").fetchall()
    for (name,) in rows:
        if name.startswith(ours):
            drop(name)


def execute(url: str, statement: Any, values: Mapping[str, Any] | None = None) -> list[Any]:
    """Run a statement apart; its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def owner_url(name: str | None = None) -> str:
    """The server as its administrator, who owns what is made there."""
    given = session.address("postgres")
    return given if name is None else urlsplit(given)._replace(path=f"/{name}").geturl()


def login_url(name: str) -> str:
    """A database as the login of an application: neither an owner nor a superuser."""
    parts = conninfo_to_dict(owner_url(name))
    credentials = f"{LOGIN}:{PASSWORD.replace(' ', '%20')}"
    return f"postgresql://{credentials}@{parts['host']}:{parts['port']}/{name}"


def name_of(url: str) -> str:
    """The name of the database in a URL."""
    return str(conninfo_to_dict(url)["dbname"])


def prefix() -> str:
    """What the names of this session's databases begin with."""
    return "t" + session.folder().name.rpartition("-")[2].replace("_", "").lower()


def _template() -> str:
    name = f"{prefix()}_template"
    found = execute(
        owner_url(), "SELECT 1 FROM pg_database WHERE datname = %(name)s", {"name": name}
    )
    if not found:
        create(name)
        _migrated(owner_url(name))
        with_login()
    return name


def with_login() -> None:
    """Make the application's login, a member of the role that row-level security binds."""
    execute(
        owner_url(),
        sql.SQL(
            "DO $do$ BEGIN CREATE ROLE {login} LOGIN PASSWORD {password} NOSUPERUSER NOBYPASSRLS"
            " IN ROLE muniment_app; EXCEPTION WHEN duplicate_object THEN NULL; END $do$"
        ).format(login=sql.Identifier(LOGIN), password=sql.Literal(PASSWORD)),
    )


def _migrated(url: str) -> None:
    """In a thread of its own: the caller's may be running an event loop already."""
    from muniment.stores.postgres.migrate import migrate

    thread = threading.Thread(target=lambda: asyncio.run(migrate(url)))
    thread.start()
    thread.join()


DATABASES = Databases()
