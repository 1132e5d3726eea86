"""Whether the process lives, whether it can serve, and what it counts."""

from __future__ import annotations

import asyncio
import hmac
from typing import Annotated

from fastapi import APIRouter, Header
from pydantic import BaseModel
from starlette.responses import Response

from muniment.server.problems import Problem
from muniment.server.routes.documented import ALWAYS, problems
from muniment.server.services import Services, Serving

router = APIRouter(tags=["health"])
_SECONDS = 5.0


class Health(BaseModel):
    """`status` is ok."""

    status: str = "ok"


@router.get("/healthz", responses=problems(*ALWAYS))
async def healthz() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz", responses=problems(*ALWAYS))
async def readyz(services: Serving) -> Health:
    """The store is reachable and migrated."""
    await _sizes(services)
    return Health()


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **problems(401, *ALWAYS)},
)
async def metrics(
    services: Serving, authorization: Annotated[str | None, Header()] = None
) -> Response:
    """The service's figures in Prometheus' text format."""
    token = services.settings.metrics_token
    given = (authorization or "").removeprefix("Bearer ")
    if token is not None and not hmac.compare_digest(given.encode(), token.encode()):
        headers = {"WWW-Authenticate": "Bearer"}
        raise Problem(401, "unauthorized", "the metrics token is needed", headers=headers)
    services.metrics.sizes(await _sizes(services))
    return Response(services.metrics.text(), media_type="text/plain; version=0.0.4")


async def _sizes(services: Services) -> dict[str, int]:
    try:
        async with asyncio.timeout(_SECONDS):
            return dict(await services.memory.store.service.sizes())
    except Exception:
        raise Problem(503, "store", "the store cannot answer now", retry_after=1) from None
