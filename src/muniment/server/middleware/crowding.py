"""How many requests are served at once."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.server.problems import BUSY_SECONDS, Problem

ALWAYS_SERVED = frozenset({"/healthz", "/readyz", "/metrics"})


class CrowdingMiddleware:
    """Answers 503 with Retry-After past `limit` requests at once; health is always told."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what there is room for."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_SERVED:
            await self._app(scope, receive, send)
            return
        if self._now >= self._limit:
            problem = Problem(503, "crowded", "too many requests at once", retry_after=BUSY_SECONDS)
            await problem.response(scope)(scope, receive, send)
            return
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1
