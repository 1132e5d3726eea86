"""One request for each route, so that every one can be asked by the wrong caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
from fastapi import FastAPI

Route = tuple[str, str]  # method, path as it is declared

OPEN: frozenset[Route] = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")})


@dataclass(frozen=True)
class Asked:
    """A request that a caller of the right role may make; `admin` alone, where it says so."""

    body: Any = None
    params: tuple[tuple[str, str], ...] = ()
    admin: bool = False
    content: bytes | None = None


_QUESTION = {"messages": [{"role": "user", "content": "hello"}]}
_EXCHANGE = {"session_id": "s1", "messages": [{"role": "user", "content": "I live in Oslo"}]}

_NOTHING = b'{"format": "muniment-entries", "version": 1, "count": 0}\n'

REQUESTS: dict[Route, Asked] = {
    ("POST", "/v1/chat/completions"): Asked(_QUESTION),
    ("POST", "/v1/agent/completions"): Asked(_QUESTION),
    ("POST", "/v1/agent/runs/{run_id}/resume"): Asked(),
    **{
        (method, f"/v1/{kind}/sessions{path}"): asked
        for kind in ("chat", "agent")
        for method, path, asked in (
            ("GET", "", Asked()),
            ("POST", "", Asked()),
            ("GET", "/{session_id}/messages", Asked()),
            ("PATCH", "/{session_id}", Asked({"title": "mine"})),
            ("DELETE", "/{session_id}", Asked()),
        )
    },
    ("GET", "/v1/memory/memories"): Asked(),
    ("POST", "/v1/memory/memories"): Asked({"content": "likes tea"}),
    ("GET", "/v1/memory/memories/{memory_id}"): Asked(),
    ("GET", "/v1/memory/memories/{memory_id}/history"): Asked(),
    ("DELETE", "/v1/memory/memories/{memory_id}"): Asked(),
    ("POST", "/v1/memory/search"): Asked({"query": "tea"}),
    ("POST", "/v1/memory/context"): Asked({"question": "tea?", "session_id": "s1"}),
    ("POST", "/v1/memory/extract"): Asked(_EXCHANGE),
    ("DELETE", "/v1/memory/sessions/{session_id}"): Asked(),
    ("DELETE", "/v1/memory/users/{user_id}"): Asked(admin=True),
    ("GET", "/v1/memory/usage"): Asked(admin=True),
    ("POST", "/v1/memory/export"): Asked({}, admin=True),
    ("POST", "/v1/memory/import"): Asked(content=_NOTHING, admin=True),
}


def routes_of(app: FastAPI) -> list[Route]:
    """Every route that the app documents."""
    paths: dict[str, dict[str, Any]] = app.openapi()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


async def ask(
    client: httpx2.AsyncClient,
    route: Route,
    *,
    headers: dict[str, str],
    params: dict[str, str] | None = None,
    **ids: str,
) -> httpx2.Response:
    """Make the request of `route`, with `ids` for its path's parts."""
    method, path = route
    asked = REQUESTS[route]
    for part in ("session_id", "memory_id", "user_id", "run_id"):
        path = path.replace(f"{{{part}}}", ids.get(part, "unknown"))
    content = {"content": asked.content} if asked.content is not None else {}
    body = {"json": asked.body} if asked.body is not None else {}
    return await client.request(
        method, path, headers=headers, params={**dict(asked.params), **(params or {})},
        **body, **content,
    )  # fmt: skip
