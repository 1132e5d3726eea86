"""Web pages of others, which a browser lets ask a service on its own machine."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.server.problems import Problem
from muniment.server.settings import LOOPBACK


class PagesMiddleware:
    """For a service that asks for no credential (AUTH_MODE=none): answers 403 to a request that a
    page of another origin sent, and, where it listens on `loopback`, to one for any other name,
    since a page's name may be made to mean this machine.
    """

    def __init__(self, app: ASGIApp, *, loopback: bool) -> None:
        self._app = app
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what no page of another origin sent."""
        if scope["type"] == "http" and self._is_foreign(Headers(scope=scope)):
            problem = Problem(403, "page", "pages of another origin are not served without tokens")
            await problem.response(scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign(self, headers: Headers) -> bool:
        host = headers.get("host", "")
        if self._loopback and host and _name(host) not in LOOPBACK:
            return True
        origin = headers.get("origin")
        return origin is not None and origin.partition("://")[2] != host


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
