"""How many requests are served at once, and how many of one tenant."""

from __future__ import annotations

from collections import Counter

from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.server.problems import BUSY_SECONDS, Problem

ALWAYS_SERVED = frozenset({"/healthz", "/readyz", "/metrics"})
_SHARE = 7
_PLACE = "place"


class CrowdingMiddleware:
    """Answers 503 with Retry-After past `limit` requests at once; health is always told.

    A tenant may have at most seven times as many places as are free: one alone gets seven
    eighths of them, several share, and whoever comes next finds a place.
    """

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._now = 0
        self._of_tenant: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what there is room for."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_SERVED:
            await self._app(scope, receive, send)
            return
        if self._now >= self._limit:
            await crowded().response(scope)(scope, receive, send)
            return
        place = scope.setdefault("state", {})[_PLACE] = Place(self)
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1
            place.leave()

    def enter(self, tenant: str) -> None:
        """Count a request to `tenant`; Problem 503 where it has its share already."""
        free = self._limit - self._now + 1  # its own place is still to be had
        if self._of_tenant[tenant] >= _SHARE * free:
            raise crowded()
        self._of_tenant[tenant] += 1

    def leave(self, tenant: str) -> None:
        """A request of `tenant` has ended."""
        self._of_tenant[tenant] -= 1
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]


class Place:
    """One request's place: the tenant's once it is known whose it is."""

    def __init__(self, crowd: CrowdingMiddleware) -> None:
        self._crowd = crowd
        self._tenant: str | None = None

    def take(self, tenant: str) -> None:
        """Have it for `tenant`; Problem 503 where that has its share already."""
        if self._tenant is None:
            self._crowd.enter(tenant)
            self._tenant = tenant

    def leave(self) -> None:
        """Free it."""
        if self._tenant is not None:
            self._crowd.leave(self._tenant)


def take_place(scope: Scope, tenant: str) -> None:
    """Count the request of `scope` to `tenant`; Problem 503 where that has its share already."""
    place = scope.get("state", {}).get(_PLACE)
    if place is not None:
        place.take(tenant)


def crowded() -> Problem:
    """There is no room."""
    return Problem(503, "crowded", "too many requests at once", retry_after=BUSY_SECONDS)
