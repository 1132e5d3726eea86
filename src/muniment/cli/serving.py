"""`serve`: the HTTP service."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from muniment.extras import missing_extra


def serve(
    host: Annotated[
        str | None, typer.Option(help="Listen here; by default MUNIMENT_HOST, or 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="By default MUNIMENT_PORT, or 8000; 0: any free one."),
    ] = None,
) -> None:
    """Serve memory over HTTP until stopped: OpenAPI at /docs. Configured by MUNIMENT_ variables."""
    try:
        from muniment.server.running import serve as run  # the extra is needed only here
        from muniment.server.settings import load_server_settings
    except ModuleNotFoundError:
        raise missing_extra("server") from None
    settings = load_server_settings()
    run(
        replace(
            settings,
            host=settings.host if host is None else host,
            port=settings.port if port is None else port,
        )
    )
