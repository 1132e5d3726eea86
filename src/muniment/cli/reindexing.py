"""`reindex`: words and embeddings of what is stored, rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import options
from muniment.cli.exits import BadInput
from muniment.cli.identity import realm_of
from muniment.cli.output import console, counted, print_json, say
from muniment.cli.progress import progress
from muniment.cli.running import with_store

if TYPE_CHECKING:
    from muniment.wiring import AsyncStore


def reindex(
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant", help="Only of this tenant; everything without.", show_default=False
        ),
    ] = None,
    user: options.RealmUser = None,
    agent: options.RealmAgent = None,
    session: options.RealmSession = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Rebuild the index of what is stored, for another embedder or after an update.

    Without --tenant everything is rebuilt, and the embedder of this machine becomes the store's.
    An interrupted run goes on where it stopped. Nothing that is stored changes.
    """
    if tenant is None and (user, agent, session) != (None, None, None):
        raise BadInput("--tenant: is needed with --user, --agent and --session")
    realm = None if tenant is None else realm_of(tenant, user, agent, session)

    async def work(store: AsyncStore) -> int:
        with progress("Rebuilding the index", total=None, silent=as_json) as seen:
            return await store.reindex(realm, progress=seen)

    rows = with_store(url, work, reindexing=tenant is None)
    if as_json:
        print_json({"rows": rows})
    else:
        what = counted(rows, "memory or message", "memories and messages")
        say(console(), f"rebuilt the index of {what}")
