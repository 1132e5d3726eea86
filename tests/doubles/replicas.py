"""Two processes of the service on one store, and clients of either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from muniment.server.agent.checkpoints import prepare
from tests.doubles.app import url_of
from tests.doubles.openai_server import OpenAIServer
from tests.doubles.service import JWT_MODE, Service, bearer
from tests.servers import session

QUOTA_TOKENS = 4000
SESSION_DAYS = 3
Person = Callable[..., httpx2.Client]


@dataclass(frozen=True)
class Replicas:
    """The model that both ask, and the two."""

    model: OpenAIServer
    services: tuple[Service, Service]

    @contextmanager
    def people(self) -> Iterator[Person]:
        """Gives clients: `person(user, at=0, role=...)`, all in one new tenant."""
        own = f"t-{uuid4().hex}"
        with ExitStack() as stack:

            def person(user: str, at: int = 0, tenant: str = own, **claims: Any) -> httpx2.Client:
                signed = bearer(user, **{"tenants": [tenant], "projects": ["apollo"], **claims})
                client = self.services[at].client(**signed)
                client.params = httpx2.QueryParams({"tenant": tenant})
                return stack.enter_context(client)

            yield person


@contextmanager
def replicas_on(store: str, folder: Path) -> Iterator[Replicas]:
    """On a store of this kind, sqlite or postgres, which nobody else has."""
    url = url_of(store, folder)
    if store == "postgres":
        asyncio.run(_checkpointed(url))
    with OpenAIServer.running() as model, ExitStack() as stack:
        settings = _settings(url, folder, model)
        one, two = (stack.enter_context(Service.running(folder, **settings)) for _ in range(2))
        yield Replicas(model, (one, two))


async def _checkpointed(url: str) -> None:
    from tests.servers.databases import DATABASES, name_of, owner_url

    DATABASES.lose(url)  # in use until the session ends
    await prepare(owner_url(name_of(url)))


def _settings(url: str, folder: Path, model: OpenAIServer) -> dict[str, str]:
    return {
        **JWT_MODE,
        "MUNIMENT_DATABASE_URL": url,
        "MUNIMENT_MODEL": "m",
        "MUNIMENT_MODEL_BASE_URL": model.url,
        "MUNIMENT_AGENT_TOOLS": "tests.doubles.tools:TOOLS",
        "MUNIMENT_AUDIT_PATH": "table" if "postgres" in url else str(folder / "audit.log"),
        "MUNIMENT_VALKEY_URL": session.address("valkey"),
        "MUNIMENT_QUOTA_TOKENS": str(QUOTA_TOKENS),
        "MUNIMENT_MEMORY_RETENTION_DAYS_SESSION": str(SESSION_DAYS),
    }
