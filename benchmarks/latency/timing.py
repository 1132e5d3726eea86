"""Timing calls: many of them, in wall and processor time, told as percentiles.

Where two virtual processors share a core with somebody else's, the same work takes up to twice
as long for minutes. So a piece of work that is always the same is timed before each call; how much
longer than ever it took, ``pace``, is told beside the figure, which is not changed by it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds a call; ``cpu`` is the median of this process's processor time.

    ``pace``: how many times as long the same work took meanwhile as at its fastest, the median.
    """

    p50: float
    p95: float
    least: float
    cpu: float
    calls: int
    pace: float | None = None

    @classmethod
    def of(cls, wall: list[float], cpu: list[float], pace: float | None = None) -> Timing:
        """From seconds, one number a call."""
        ordered, worked = sorted(wall), sorted(cpu)
        return cls(
            p50=_milliseconds(ordered[len(ordered) // 2]),
            p95=_milliseconds(ordered[int(len(ordered) * 0.95)]),
            least=_milliseconds(ordered[0]),
            cpu=_milliseconds(worked[len(worked) // 2]),
            calls=len(ordered),
            pace=pace,
        )


LEAST_SECONDS = 3.0
"""How long calls are timed at least: fewer milliseconds than a neighbour is busy tell of him."""


class Pace:
    """How fast the machine is while something is timed."""

    _best = inf

    def __init__(self) -> None:
        self._taken: list[float] = []

    def look(self) -> None:
        """Time the same work once more."""
        begun = time.perf_counter()
        sum(number * number for number in range(500))
        self._taken.append(time.perf_counter() - begun)
        Pace._best = min(Pace._best, self._taken[-1])

    def ratio(self) -> float:
        """The median to the best there ever was."""
        return round(sorted(self._taken)[len(self._taken) // 2] / Pace._best, 2)


def timed(call: Callable[[int], object], calls: int, *, warm: int = 3) -> Timing:
    """``call`` with 0, 1, 2..., at least so many ``calls``; the first ``warm`` are not counted."""
    return timed_in_turn([call], calls, warm=warm)[0]


def timed_in_turn(
    calls: Sequence[Callable[[int], object]], times: int, *, warm: int = 3
) -> list[Timing]:
    """:func:`timed` for several things to compare: one call of each in turn, so that whatever
    else the machine does falls on all of them."""
    measured: list[tuple[list[float], list[float]]] = [([], []) for _ in calls]
    pace = Pace()
    for number in _enough(warm + times):
        pace.look()
        for call, (wall, cpu) in zip(calls, measured, strict=True):
            begun, worked = time.perf_counter(), time.process_time()
            call(number)
            wall.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - worked)
    return [Timing.of(wall[warm:], cpu[warm:], pace.ratio()) for wall, cpu in measured]


async def timed_async(
    call: Callable[[int], Awaitable[object]], calls: int, *, warm: int = 3
) -> Timing:
    """:func:`timed` for a coroutine function."""
    return (await timed_async_in_turn([call], calls, warm=warm))[0]


async def timed_async_in_turn(
    calls: Sequence[Callable[[int], Awaitable[object]]], times: int, *, warm: int = 3
) -> list[Timing]:
    """:func:`timed_in_turn` for coroutine functions."""
    measured: list[tuple[list[float], list[float]]] = [([], []) for _ in calls]
    pace = Pace()
    for number in _enough(warm + times):
        pace.look()
        for call, (wall, cpu) in zip(calls, measured, strict=True):
            begun, worked = time.perf_counter(), time.process_time()
            await call(number)
            wall.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - worked)
    return [Timing.of(wall[warm:], cpu[warm:], pace.ratio()) for wall, cpu in measured]


def _enough(times: int) -> Iterator[int]:
    """0, 1, 2...: so many, and more until :data:`LEAST_SECONDS` have passed."""
    begun = time.perf_counter()
    for number in count():
        if number >= times and time.perf_counter() - begun >= LEAST_SECONDS:
            return
        yield number


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 4)
