"""`usage`: what is stored, and what searches gave out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from muniment.cli import options
from muniment.cli.identity import realm_of, realm_words
from muniment.cli.output import console, print_json, say, table
from muniment.cli.running import with_store
from muniment.governance.usage import Usage


def usage(
    period: Annotated[
        str | None,
        typer.Option(help="A UTC day, YYYY-MM-DD; today without.", show_default=False),
    ] = None,
    tenant: options.RealmTenant = options.DEFAULT_TENANT,
    user: options.RealmUser = None,
    agent: options.RealmAgent = None,
    session: options.RealmSession = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Show what is stored now, and what the tenant's searches gave out on one UTC day."""
    realm = realm_of(tenant, user, agent, session)
    found: Usage = with_store(url, lambda store: store.usage(realm, period))
    if as_json:
        print_json(asdict(found))
        return
    out = console()
    say(out, realm_words(tenant, user, agent, session), style="bold")
    say(out, f"given out: by the searches of the whole tenant on {found.period}, in UTC")
    table(
        out,
        ("", "MEMORIES", "TOKENS", "SEARCHES"),
        [
            ("stored now", f"{found.entries:,}", f"{found.stored_tokens:,}", ""),
            (
                "given out",
                f"{found.served_entries:,}",
                f"{found.served_tokens:,}",
                f"{found.searches:,}",
            ),
        ],
    )
