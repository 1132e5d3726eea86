"""The current instant: the system's, or that of a clock that was given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from muniment.domain import checks

Clock = Callable[[], datetime]


def clock_of(given: Clock | None) -> Clock:
    """`given`, its instants in UTC (ValueError for one without a time zone); the system's for None.

    Without this a naive instant is found out where it is first compared, in the middle of a write.
    """
    if given is None:
        return _system
    return lambda: checks.instant("clock", given())


def _system() -> datetime:
    return datetime.now(UTC)
