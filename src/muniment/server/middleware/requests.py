"""Each request's id, its line in the log, its time in the metrics, and its last resort."""

from __future__ import annotations

import logging
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.server.metrics import Metrics
from muniment.server.problems import Problem, problem_of, report

_log = logging.getLogger("muniment.server.requests")
_UNKNOWN = "unknown"


class RequestsMiddleware:
    """Outermost. Every response has an `X-Request-Id`; no error gets past it unanswered.

    Log and metrics name the operation (the route's name), never the path, which holds ids.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identifier = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = identifier
        started, status = time.perf_counter(), 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []),
                    (b"x-request-id", identifier.encode()),
                ]
            await send(message)

        try:
            await self._app(scope, receive, tagged)
        except Exception as error:
            if not isinstance(error, Problem):
                report(error, identifier)
            if not status:
                await problem_of(error).response(scope)(scope, receive, tagged)
        finally:
            self._finished(scope, status, time.perf_counter() - started)

    def _finished(self, scope: Scope, status: int, seconds: float) -> None:
        operation = _operation(scope)
        self._metrics.request(operation, status, seconds)
        _log.info(
            "%s %s %d in %.1f ms",
            scope["method"] if operation != _UNKNOWN else "-",
            operation,
            status,
            seconds * 1000,
            extra={"request_id": scope["state"]["request_id"]},
        )


def _operation(scope: Scope) -> str:
    """The route's name; the framework's own routes (the document, its page) say their endpoint."""
    endpoint = getattr(scope.get("endpoint"), "__name__", _UNKNOWN)
    return str(getattr(scope.get("route"), "name", endpoint))
