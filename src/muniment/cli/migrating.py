"""`migrate`: the store's schema brought to this version's."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Annotated

import typer

from muniment.cli import options
from muniment.cli.exits import BadInput
from muniment.cli.output import console, print_json, say
from muniment.cli.running import configured_url, path_of, with_store


def migrate(
    url: options.Url = None,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            min=0,
            max=1024,
            help="PostgreSQL: divide new tables by a hash of the tenant into so many parts.",
        ),
    ] = 0,
    as_json: options.Json = False,
) -> None:
    """Bring the store's schema to this version's.

    For PostgreSQL with the login that owns the database: it makes the extension, the tables, and
    the role `muniment_app`, to which the application's own login must belong; with the extra
    `langgraph` also the tables of its checkpoints. A SQLite file is migrated whenever it is opened.
    """
    from muniment.stores.urls import is_postgres, postgres_url

    target = url or configured_url()
    if is_postgres(target):
        from muniment.stores.postgres.migrate import migrate as migrated

        before, after = asyncio.run(migrated(postgres_url(target), partitions=partitions))
        if _keeps_checkpoints():
            from muniment.server.agent.checkpoints import prepare

            asyncio.run(prepare(target))
    else:
        _refuse_others(target, partitions)
        described = with_store(target, lambda store: store.describe())
        before = after = int(described.get("schema", "0"))
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        say(console(), f"the schema is version {after} already")
    else:
        say(console(), f"the schema went from version {before} to {after}")


def _refuse_others(url: str, partitions: int) -> None:
    """BadInput for what only PostgreSQL has, and where there is no schema."""
    if partitions:
        raise BadInput("--partitions: is for PostgreSQL alone")
    if path_of(url) is None:
        raise BadInput("--url: keeps nothing, so there is no schema to migrate")


def _keeps_checkpoints() -> bool:
    """The extra `langgraph` is installed."""
    try:
        return find_spec("langgraph.checkpoint.postgres") is not None
    except ModuleNotFoundError:
        return False
