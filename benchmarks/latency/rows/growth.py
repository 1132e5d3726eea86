"""How recall's cost grows: with one's own rows, others' rows, tenants and sessions; and a turn's
with the history of its conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from functools import partial

from benchmarks.latency.figures import US, Figure, of_timing
from benchmarks.latency.filling import add_messages, owner_in, url_of
from benchmarks.latency.settings import Run
from benchmarks.latency.texts import StubEmbedder, Texts
from benchmarks.latency.timing import Timing, timed_async_in_turn
from muniment import MemoryOwner, OpenMemory, open_memory

_OWN_ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000)
_FOREIGN_ROWS = (0, 3_000, 10_000, 30_000)
_TENANTS = (10, 500, 5_000)
_SESSIONS = (1, 10, 100, 1_000)
_HISTORY = (12, 100, 1_000, 10_000)
_OWN, _A_TENANT, _SPREAD = 1_000, 10, 5_000
_MOST_SLOWER = 1.2
_QUESTIONS = Texts(99).questions(60)
_MOST_QUICKLY = 3_000

Fill = Callable[[OpenMemory], Awaitable[None]]


async def measure(run: Run) -> list[Figure]:
    """One figure a size, the sizes of a series in ``detail``; and the flat ones as ratios."""
    own = await _series(run, "own rows", _OWN_ROWS, _own)
    foreign = await _series(run, "foreign rows", _FOREIGN_ROWS, _beside)
    tenants = await _series(run, "tenants", _TENANTS, _among)
    sessions = await _series(run, "sessions", _SESSIONS, _spread)
    history = await _series(run, "messages of history", _HISTORY, _told, call="build")
    flat = [_flat("foreign rows", foreign), _flat("tenants", tenants)]
    return [*own, *foreign, *tenants, *sessions, *history, *flat]


def _flat(name: str, series: Sequence[Figure]) -> Figure:
    times = round(series[-1].detail["cpu"] / series[0].detail["cpu"], 2)
    row, system = f"growth, {name}", f"{US}, most / least"
    return Figure(row, system, times, "x", "flat", times <= _MOST_SLOWER, "processor time")


async def _series(
    run: Run, name: str, sizes: Sequence[int], fill: Callable[[int], Fill], *, call: str = "recall"
) -> list[Figure]:
    """The sizes in turn, each in a store of its own."""
    sizes = [one for one in sizes if not run.quick or one <= _MOST_QUICKLY]
    async with AsyncExitStack() as opened:
        calls = []
        for size in sizes:
            url = url_of(run.place(f"{name}-{size}"))
            memory = await opened.enter_async_context(open_memory(url, embedder=StubEmbedder()))
            await fill(size)(memory)
            calls.append(partial(_call, memory.recall if call == "recall" else memory.context))
        timings = await timed_async_in_turn(calls, run.calls)
    return [_figure(name, size, call, timing) for size, timing in zip(sizes, timings, strict=True)]


async def _call(ask: Callable[[MemoryOwner, str], Awaitable[object]], number: int) -> None:
    await ask(owner_in("acme", "s0"), _QUESTIONS[number % len(_QUESTIONS)])


def _figure(name: str, size: int, call: str, timing: Timing) -> Figure:
    detail = {"series": name, "size": size, "call": call, **asdict(timing)}
    return replace(of_timing(f"growth, {name}", f"{US}, {size:,}", timing), detail=detail)


def _own(rows: int) -> Fill:
    return lambda memory: add_messages(memory, "acme", rows)


def _beside(rows: int) -> Fill:
    async def fill(memory: OpenMemory) -> None:
        await add_messages(memory, "acme", _OWN)
        for number in range(rows // _OWN):
            await add_messages(memory, f"other{number}", _OWN)

    return fill


def _among(tenants: int) -> Fill:
    async def fill(memory: OpenMemory) -> None:
        await add_messages(memory, "acme", _OWN)
        for number in range(tenants - 1):
            await add_messages(memory, f"other{number}", _A_TENANT)

    return fill


def _spread(sessions: int) -> Fill:
    return lambda memory: add_messages(memory, "acme", _SPREAD, a_session=_SPREAD // sessions)


def _told(messages: int) -> Fill:
    return lambda memory: add_messages(memory, "acme", messages, a_session=messages)
