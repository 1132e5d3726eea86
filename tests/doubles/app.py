"""The service's app in this process, asked without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from muniment.server.app import create_app
from muniment.server.settings import load_server_settings


def url_of(store: str, folder: Path) -> str:
    """An empty store of this kind: sqlite (a file in `folder`), postgres, or in_memory."""
    if store == "postgres":
        from tests.servers.databases import DATABASES  # a server starts for those who ask for one

        return DATABASES.lend()
    return f"sqlite:///{folder / 'memory.db'}" if store == "sqlite" else "memory://"


@asynccontextmanager
async def running_app(
    monkeypatch: pytest.MonkeyPatch, folder: Path | None = None, **environment: str
) -> AsyncIterator[tuple[FastAPI, httpx2.AsyncClient]]:
    """An app on `folder`/memory.db, or in memory, and a client of it."""
    url = "memory://" if folder is None else url_of("sqlite", folder)
    defaults = {"MUNIMENT_DATABASE_URL": url, "MUNIMENT_EMBEDDER": "none"}
    for name, value in {**defaults, **environment}.items():
        monkeypatch.setenv(name, value)
    app = create_app(load_server_settings())
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield app, client
