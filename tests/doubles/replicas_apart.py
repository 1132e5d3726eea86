"""Processes of the service on one store, each with settings of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from tests.doubles.app import url_of
from tests.doubles.openai_server import OpenAIServer
from tests.doubles.service import JWT_MODE, Service, bearer

DAYS = {"session": 3, "user": 4, "project": 5}
_RETENTION = {f"HARBORRAG_MEMORY_RETENTION_DAYS_{k.upper()}": str(v) for k, v in DAYS.items()}
# Whose store is named by DATABASE_URL, save for the one that has its own name for it.
APART: dict[str, dict[str, str]] = {
    "plain": {},
    "off": {"MUNIMENT_MEMORY_ENABLED": "false"},
    "silent": {"MUNIMENT_MEMORY_EXTRACTION_ENABLED": "no"},
    "set": {
        "HARBORRAG_AUTH_USER_ID_CLAIM": "email",
        "HARBORRAG_MEMORY_EXTRACTION_PROJECT_SCOPE": "true",
        **_RETENTION,
    },
}


@dataclass
class Apart:
    """Starts each process when it is first asked for; `clients` are of one tenant."""

    url: str
    folder: Path
    model: OpenAIServer
    stack: ExitStack
    started: dict[str, Service] = field(default_factory=dict)

    def service(self, kind: str) -> Service:
        """The process with the settings of `kind`."""
        if kind not in self.started:
            running = Service.running(self.folder, **self._settings(kind))
            self.started[kind] = self.stack.enter_context(running)
        return self.started[kind]

    def _settings(self, kind: str) -> dict[str, str]:
        named = {"MUNIMENT_DATABASE_URL": self.url}
        if kind == "set":
            named = {"MUNIMENT_DATABASE_URL": "", "HARBORRAG_CONTROL_DB_URL": self.url}
        model = {"MUNIMENT_MODEL": "m", "MUNIMENT_MODEL_BASE_URL": self.model.url}
        return {**JWT_MODE, **model, **named, **APART[kind]}


@dataclass
class Tenant:
    """One tenant's people, as clients of either process."""

    apart: Apart
    stack: ExitStack
    name: str = field(default_factory=lambda: f"t-{uuid4().hex}")

    def __call__(self, kind: str, user: str, **claims: Any) -> httpx2.Client:
        """`user` at the process of `kind`, told by the claim that it reads."""
        whole = {"tenants": [self.name], "projects": ["apollo"], "role": "editor", **claims}
        if kind == "set":
            whole = {"email": user, "sub": "a subject", **whole}
        client = self.apart.service(kind).client(**bearer(**{"sub": user, **whole}))
        client.params = httpx2.QueryParams({"tenant": self.name})
        return self.stack.enter_context(client)


@contextmanager
def apart_on(store: str, folder: Path) -> Iterator[Apart]:
    """On a store of this kind, sqlite or postgres, which nobody else has."""
    url = url_of(store, folder)
    if store == "postgres":
        from tests.servers.databases import DATABASES

        DATABASES.lose(url)  # in use until the session ends
    with OpenAIServer.running() as model, ExitStack() as stack:
        yield Apart(url, folder, model, stack)
