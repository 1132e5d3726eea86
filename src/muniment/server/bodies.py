"""Reading a request's JSON as one thing: what two readers could take differently is refused."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from muniment.domain.strict_json import MalformedJsonError, read_json

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class UnreadableBody(HTTPException):
    """The body is no JSON that has one meaning; `detail` says why, and quotes nothing of it."""

    def __init__(self, detail: str) -> None:
        super().__init__(HTTPStatus.BAD_REQUEST, detail)  # what reads the body passes on this kind


class _StrictRequest(Request):
    async def json(self) -> Any:
        """The body's value."""
        try:
            return read_json(await self.body())
        except MalformedJsonError as error:
            raise UnreadableBody(str(error)) from None


class StrictRoute(APIRoute):
    """A route that answers 422 to a body that is not JSON, or that names a field twice."""

    def get_route_handler(self) -> Handler:
        """Serve with a request that reads strictly."""
        serve = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await serve(_StrictRequest(request.scope, request.receive))

        return handler
