"""The blocking twin: the async objects themselves, driven by one background event loop."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from muniment import forks

T = TypeVar("T")

_FACES = frozenset({"conversations", "manager", "store", "memories", "working"})


class BackgroundLoop(forks.Unshared):
    """An event loop in a daemon thread, for callers that have none.

    A process that is forked off gets another, with its first call.
    """

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._inherited = False
        self._start()
        forks.tell(self)

    def _start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="muniment-blocking", daemon=True
        )
        self._thread.start()

    def begin_anew(self) -> None:
        """In a process that was forked off, which has not got the thread."""
        forks.give_up(self._loop, self._thread)
        self._starting, self._inherited = threading.Lock(), True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; an interrupt of the waiting thread cancels it."""
        with self._starting:
            if self._inherited:
                self._start()
                self._inherited = False
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking call inside the event loop would wait for itself")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self.run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _finish(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()


class Blocking:
    """`target` with its async methods blocking; everything else is `target`'s own."""

    def __init__(self, target: object, loop: BackgroundLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if inspect.iscoroutinefunction(value):
            return self._waiting(value)
        return Blocking(value, self._loop) if name in _FACES else value

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def _waiting(self, method: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
        @functools.wraps(method)
        def wait(*args: Any, **kwargs: Any) -> T:
            return self._loop.run(method(*args, **kwargs))

        return wait
