"""Every outside call of a turn: bounded in time, and never an exception into the turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from muniment.context.policy import MemoryPolicy

T = TypeVar("T")
F = TypeVar("F")
_log = logging.getLogger("muniment.turn")


class TurnGuard:
    """The time that a turn has left. Make one a turn, inside the running event loop.

    A call that fails or takes longer than `call_timeout_seconds` gives its fallback, as does
    every call once `turn_timeout_seconds` are spent; each is a WARNING with identifiers and
    the error's class, never its text. Cancellation from outside always propagates.
    """

    def __init__(self, policy: MemoryPolicy, *, session_id: str | None = None) -> None:
        self._call_seconds = policy.call_timeout_seconds
        self._ends = asyncio.get_running_loop().time() + policy.turn_timeout_seconds
        self._session_id = session_id

    async def run(self, step: str, call: Callable[[], Awaitable[T]], fallback: F) -> T | F:
        """What `call` gives, or `fallback`; `step` names the call in the log."""
        left = self._ends - asyncio.get_running_loop().time()
        if left <= 0:
            self.warn(step, "skipped: the turn's time is spent", "TurnTimeout")
            return fallback
        try:
            async with asyncio.timeout(min(self._call_seconds, left)):
                return await call()
        except asyncio.CancelledError as error:
            if cancelled_from_outside():
                raise
            self.warn(step, "failed", type(error).__name__)
        except Exception as error:
            self.warn(step, "failed", type(error).__name__)
        return fallback

    def warn(self, step: str, what: str, error: str) -> None:
        """One WARNING: the step, the error's class and the session."""
        _log.warning(
            "memory step %s %s (%s)",
            step,
            what,
            error,
            extra={"step": step, "error": error, "session_id": self._session_id},
        )


def cancelled_from_outside() -> bool:
    """Whether somebody asked this task to stop. A client library's own cancellation looks the
    same otherwise.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
