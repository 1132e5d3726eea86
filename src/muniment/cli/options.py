"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from muniment.domain import identifiers

DEFAULT_TENANT = identifiers.DEFAULT_TENANT
DEFAULT_USER = identifiers.DEFAULT_USER

OPERATOR = "Identity (trusted-operator use: nothing checks that you are this owner)"

Tenant = Annotated[
    str, typer.Option("--tenant", help="Act for this tenant.", rich_help_panel=OPERATOR)
]
User = Annotated[str, typer.Option("--user", help="Act as this user.", rich_help_panel=OPERATOR)]
Session = Annotated[
    str | None,
    typer.Option("--session", help="In this session.", rich_help_panel=OPERATOR),
]
Project = Annotated[
    str | None,
    typer.Option("--project", help="In this project.", rich_help_panel=OPERATOR),
]
RealmTenant = Annotated[
    str, typer.Option("--tenant", help="Of this tenant.", rich_help_panel=OPERATOR)
]
RealmUser = Annotated[
    str | None, typer.Option("--user", help="Only of this user.", rich_help_panel=OPERATOR)
]
RealmAgent = Annotated[
    str | None, typer.Option("--agent", help="Only of this agent.", rich_help_panel=OPERATOR)
]
RealmSession = Annotated[
    str | None, typer.Option("--session", help="Only of this session.", rich_help_panel=OPERATOR)
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="The store, e.g. sqlite:///muniment.db; by default from the settings.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", help="What was believed then: ISO 8601, UTC where no zone is given."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
MinTrust = Annotated[
    str | None, typer.Option("--min-trust", help="At least untrusted, model or owner.")
]
