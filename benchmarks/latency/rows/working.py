"""Working memory: an update costs what it costs with one live run, however many there are."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from benchmarks.latency.environments import HARBORRAG
from benchmarks.latency.figures import US, Figure
from benchmarks.latency.filling import url_of
from benchmarks.latency.settings import Run
from benchmarks.latency.timing import Timing, timed_async_in_turn
from muniment import MemoryOwner, OpenMemory, open_memory

_RUNS = 50_000
_MOST_SLOWER = 1.2


async def measure(run: Run) -> list[Figure]:
    """In memory and on SQLite, and the peer."""
    row = f"working-memory update, {_RUNS:,} live runs"
    figures: list[Figure] = []
    for store in ("memory", "sqlite"):
        alone, among = await _updated(run, store)
        figures += _told(row, f"{US}, {store}", alone, among)
    return [*figures, *_peer(run, row)]


def _told(row: str, system: str, alone: Timing, among: Timing) -> list[Figure]:
    times = among.p50 / alone.p50
    rate = Figure(row, system, round(1000 / among.p50, 1), "/s", detail={"p50": among.p50})
    flat = times <= _MOST_SLOWER
    return [rate, Figure(row, f"{system}, many / one", round(times, 2), "x", "flat", flat)]


async def _updated(run: Run, store: str) -> list[Timing]:
    """An update with one live run and with all, in turn: each in a store of its own."""
    counts = (1, run.size(_RUNS))
    async with AsyncExitStack() as opened:
        sides = []
        for runs in counts:
            url = "memory://" if store == "memory" else url_of(run.place(f"working-{runs}"))
            memory = await opened.enter_async_context(open_memory(url, embedder=None))
            for number in range(runs):
                await _update(memory, number)
            sides.append(partial(_update_one_of, memory, runs))
        return await timed_async_in_turn(sides, 10 * run.calls)


async def _update_one_of(memory: OpenMemory, runs: int, call: int) -> None:
    await _update(memory, call % runs)


async def _update(memory: OpenMemory, number: int) -> None:
    owner = MemoryOwner("acme", principal_id="u", session_id="s", run_id=f"r{number}")
    await memory.manager.update(owner, {"step": number}, ttl_seconds=3600)


def _peer(run: Run, row: str) -> list[Figure]:
    def read(answer: dict[str, Any]) -> list[Figure]:
        alone, among = (Timing.of(answer[name]["wall"], [0.0]) for name in ("alone", "among"))
        return [
            *_told(row, f"{HARBORRAG.name}, in memory", alone, among)[:1],
            Figure(
                row,
                f"{HARBORRAG.name}, many / one",
                round(among.p50 / alone.p50, 2),
                "x",
            ),
        ]

    return run.of_peer(row, HARBORRAG, {"what": "working", "runs": run.size(_RUNS)}, read)
