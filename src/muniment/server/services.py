"""What the routes work with."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request

from muniment.ports import DocumentRetriever
from muniment.server.metrics import Metrics
from muniment.server.settings import ServerSettings
from muniment.server.upstream import ChatModel
from muniment.wiring import OpenMemory

if TYPE_CHECKING:
    from muniment.server.agent.runs import AgentRuns

Result = TypeVar("Result")


class Runs:
    """Work that outlives the request that began it, and is waited for at shutdown."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run `work` on its own: a client that leaves does not stop it, a shutdown does."""
        return _kept_in(self._tasks, asyncio.create_task(work))

    async def finish(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` to its end, whatever becomes of who waits for it."""
        return await asyncio.shield(_kept_in(self._last, asyncio.create_task(work)))

    async def aclose(self) -> None:
        """Cancel what still runs, and wait until it has stored what it has."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*self._last, return_exceptions=True)


def _kept_in(tasks: set[asyncio.Task[Any]], task: asyncio.Task[Result]) -> asyncio.Task[Result]:
    """Hold `task` until it ends; an error that nobody is left to hear is not shouted."""

    def ended(task: asyncio.Task[Any]) -> None:
        tasks.discard(task)
        if not task.cancelled():
            task.exception()

    tasks.add(task)
    task.add_done_callback(ended)
    return task


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running service. `model` is None where none is configured, `agent` where
    there is no model or the extra `langgraph` is not installed."""

    settings: ServerSettings
    memory: OpenMemory
    metrics: Metrics
    model: ChatModel | None = None
    retriever: DocumentRetriever | None = None
    agent: AgentRuns | None = None
    runs: Runs = field(default_factory=Runs)


async def services(request: Request) -> Services:  # a plain function would be given a thread
    """The services of the app that serves `request`."""
    found: Services = request.app.state.services
    return found


Serving = Annotated[Services, Depends(services)]
