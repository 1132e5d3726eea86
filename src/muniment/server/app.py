"""The service: settings to an app, and running it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, TCPConnector
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.telemetry import TelemetryConfig

from muniment.errors import MemoryConfigurationError, MemoryStoreError
from muniment.server.completions.citations import as_retriever
from muniment.server.identity import Authenticator
from muniment.server.keys import keys_for
from muniment.server.metrics import DegradationHandler, Metrics
from muniment.server.middleware.bounds import BoundsMiddleware
from muniment.server.middleware.crowding import CrowdingMiddleware
from muniment.server.middleware.pages import PagesMiddleware
from muniment.server.middleware.requests import RequestsMiddleware
from muniment.server.problems import ProblemDocument, install_problems
from muniment.server.routes import (
    agent,
    completions,
    governance,
    health,
    memories,
    recall,
    transfer,
)
from muniment.server.routes.sessions import sessions_of
from muniment.server.services import Services
from muniment.server.settings import ServerSettings
from muniment.server.upstream import ChatModel
from muniment.wiring import OpenMemory, open_memory

if TYPE_CHECKING:
    from muniment.server.agent.runs import AgentRuns

_STREAMED = frozenset({transfer.IMPORT_PATH})
# The framework's own telemetry logs what exceptions say, and that may be a user's text.
_NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
_KEPT_SECONDS = 4.0  # servers commonly close after 5
_LINE_BYTES = 1 << 20
_log = logging.getLogger("muniment.server")
_turns = logging.getLogger("muniment.turn")


def create_app(
    settings: ServerSettings,
    *,
    retriever: object | None = None,
    agent_tools: Sequence[object] | None = None,
) -> FastAPI:
    """The service on the store that `settings` name, opened and closed with the app.

    `retriever` is a DocumentRetriever or a LangChain retriever, `agent_tools` LangChain tools for
    agent runs; by default the settings' ones. MemoryConfigurationError for settings that do not
    fit.
    """
    parts = Parts(
        retriever if retriever is not None else _named("RETRIEVER", settings.retriever),
        agent_tools if agent_tools is not None else _named("AGENT_TOOLS", settings.agent_tools),
    )
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _running(app, settings, metrics, parts):
            yield

    app = FastAPI(title="Muniment", lifespan=lifespan, telemetry=_NO_TELEMETRY)
    _add_routes(app)
    install_problems(app)
    app.add_middleware(CrowdingMiddleware, limit=settings.max_concurrency)
    app.add_middleware(BoundsMiddleware, max_body_bytes=settings.max_body_bytes, streamed=_STREAMED)
    if settings.auth.mode == "none":
        app.add_middleware(PagesMiddleware, loopback=settings.on_loopback)
    app.add_middleware(RequestsMiddleware, metrics=metrics)
    return app


@dataclass(frozen=True, slots=True)
class Parts:
    """What the operator brings along."""

    retriever: object | None
    agent_tools: object | None


@asynccontextmanager
async def _running(
    app: FastAPI, settings: ServerSettings, metrics: Metrics, parts: Parts
) -> AsyncIterator[None]:
    """Open what the routes work with; close it in reverse, the completions under way first."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(_http_client())
        keys = keys_for(settings.auth, client) if settings.auth.mode == "jwt" else None
        app.state.authenticator = Authenticator(settings.auth, keys)
        url = settings.memory.database_url
        memory = await stack.enter_async_context(open_memory(settings=settings.memory))
        chosen = settings.memory.model
        model = None if chosen is None else ChatModel(client, chosen)
        app.state.services = services = Services(
            settings,
            memory,
            metrics,
            model=model,
            retriever=None if parts.retriever is None else as_retriever(parts.retriever),
            agent=await _agent(stack, memory, model, url, parts.agent_tools),
        )
        stack.push_async_callback(services.runs.aclose)
        handler = DegradationHandler(metrics)
        _turns.addHandler(handler)
        stack.callback(_turns.removeHandler, handler)
        yield


async def _agent(
    stack: AsyncExitStack,
    memory: OpenMemory,
    model: ChatModel | None,
    url: str,
    tools: object | None,
) -> AgentRuns | None:
    """Agent runs, where there is a model and the extra is installed."""
    if model is None or find_spec("langgraph") is None:
        return None
    from muniment.server.agent.runs import open_runs

    try:
        return await stack.enter_async_context(open_runs(memory, model, url, tools))
    except MemoryStoreError as error:
        _log.warning("agent runs are off: %s", error)
        return None


def _add_routes(app: FastAPI) -> None:
    app.router.routes.extend(completions.router.routes)  # not included: that is matched slowly
    app.include_router(health.router)
    app.include_router(agent.router)
    app.include_router(sessions_of("chat"))
    app.include_router(sessions_of("agent"))
    app.include_router(memories.router)
    app.include_router(recall.router)
    app.include_router(governance.router)
    app.include_router(transfer.router)
    app.openapi = lambda: _documented(app)  # type: ignore[method-assign]


def _documented(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, with the one shape of every error."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=_version(), routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        template = "#/components/schemas/{model}"
        schema = ProblemDocument.model_json_schema(ref_template=template)
        schemas.update(schema.pop("$defs", {}))
        schemas[ProblemDocument.__name__] = schema
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = document
    return app.openapi_schema


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("muniment")
    except PackageNotFoundError:
        return "0"


def _http_client() -> ClientSession:
    """For the model and the key set. Requests are bounded before they get here."""
    connector = TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS)
    return ClientSession(connector=connector, read_bufsize=_LINE_BYTES)


def _named(variable: str, place: str | None) -> Any:
    """The object at `module:name` of a setting."""
    if place is None:
        return None
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise MemoryConfigurationError(
            f"MUNIMENT_{variable}: must be module:name of what can be imported"
        ) from None
