"""Running the async methods without an event loop: what they await are futures of threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

_thread = threading.local()


def is_driven() -> bool:
    """Whether a thread that may wait runs this, and no event loop."""
    return getattr(_thread, "driving", False)


class Finished(Generic[T]):
    """An awaitable for a thread's future, under an event loop and under `drive` alike."""

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        if is_driven():
            yield self._future
            return self._future.result()
        return (yield from asyncio.wrap_future(self._future).__await__())


class Handed(Generic[T]):
    """What another thread hands over, once, to the coroutine that makes and awaits this.

    Under an event loop its own future takes it, which costs half of what a thread's future does.
    """

    def __init__(self) -> None:
        self._loop = None if is_driven() else asyncio.get_running_loop()
        self._future: Any = Future() if self._loop is None else self._loop.create_future()

    def give(self, answer: T) -> None:
        """The answer; one that nobody waits for any more is dropped."""
        self._settle(self._future.set_result, answer)

    def fail(self, error: Exception) -> None:
        """The failure, raised where this is awaited."""
        self._settle(self._future.set_exception, error)

    def _settle(self, settle: Callable[[Any], None], value: Any) -> None:
        if self._loop is None:
            settle(value)
            return
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._settle_here, settle, value)

    def _settle_here(self, settle: Callable[[Any], None], value: Any) -> None:
        if not self._future.done():
            settle(value)

    def __await__(self) -> Generator[Any, None, T]:
        if self._loop is not None:
            return cast(T, (yield from self._future.__await__()))
        yield self._future
        return cast(T, self._future.result())


async def in_thread(work: Callable[[], T]) -> T:
    """The result of `work`: off the event loop, or at once where there is none."""
    if is_driven():
        return work()
    return await asyncio.to_thread(work)


def drive(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, each future that it awaits waited for in this thread.

    `work` may await `Finished` and `Handed` only: no timer, no I/O of an event loop.
    """
    error: BaseException | None = None
    while True:
        try:
            future = _step(work, error)
        except StopIteration as done:
            return cast(T, done.value)
        error = _waited(future)


def _step(work: Coroutine[Any, Any, Any], error: BaseException | None) -> Future[Any]:
    before, _thread.driving = is_driven(), True
    try:
        step = work.send(None) if error is None else work.throw(error)
        return cast("Future[Any]", step)
    finally:
        _thread.driving = before


def _waited(future: Future[Any]) -> BaseException | None:
    """None once the future is done; an interrupt of the waiting thread otherwise."""
    try:
        future.exception()
    except BaseException as interrupt:
        return interrupt
    return None
