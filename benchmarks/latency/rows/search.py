"""``search`` of the synchronous store: one large tenant, and one's own rows beside others'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.latency.environments import RAGLEAP
from benchmarks.latency.figures import US, Figure, of_timing
from benchmarks.latency.settings import Run
from benchmarks.latency.texts import COMMON, Texts, chunks
from benchmarks.latency.timing import Timing, timed, timed_in_turn
from muniment import AsyncSQLiteStore, Scope, SQLiteStore

_LARGE, _OWN, _TENANTS = 100_000, 1_000, 100
_TOGETHER = 256
_FIVE = " ".join(COMMON)


def measure(run: Run) -> list[Figure]:
    """Both rows, with ragleap-memory beside them."""
    return [*_large(run), *_beside_others(run)]


def _large(run: Run) -> list[Figure]:
    row, rows = f"search, {_LARGE:,} entries, five common words", run.size(_LARGE)
    ours = _searched(run, "search-large", rows, tenants=1, questions=[_FIVE])
    figures = [of_timing(row, US, ours)]
    theirs = _peer(run, row, rows, tenants=1, questions=[_FIVE])
    if theirs is None or isinstance(theirs, Figure):
        return figures + ([theirs] if theirs else [])
    times = theirs.p50 / ours.p50
    ratio = Figure(row, f"{RAGLEAP.name} / {US}", round(times, 2), "x", "10 x faster", times >= 10)
    return [*figures, of_timing(row, RAGLEAP.name, theirs), ratio]


def _beside_others(run: Run) -> list[Figure]:
    row = f"search, {_OWN:,} own beside {_OWN * (_TENANTS - 1):,} foreign"
    own, questions = run.size(_OWN), Texts(99).questions(run.calls)
    places = run.place("search-alone"), run.place("search-among")
    fill(places[0], own, 1)
    fill(places[1], own * _TENANTS, _TENANTS)
    with _store(run, places[0]) as one, _store(run, places[1]) as other:
        alone, among = timed_in_turn(
            [_search(one, questions), _search(other, questions)], run.calls
        )
    times, wall = among.cpu / alone.cpu, among.p50 / alone.p50
    figures = [
        of_timing(row, f"{US}, alone", alone),
        of_timing(row, f"{US}, among others", among),
        Figure(
            row,
            f"{US}, among / alone",
            round(times, 2),
            "x",
            "at most 1.2 x",
            times <= 1.2,
            f"processor time; {wall:.2f} x on the wall",
        ),
    ]
    theirs = [
        _peer(run, row, own * tenants, tenants=tenants, questions=questions)
        for tenants in (1, _TENANTS)
    ]
    for name, each in zip(("alone", "among others"), theirs, strict=True):
        if isinstance(each, Timing):
            figures.append(of_timing(row, f"{RAGLEAP.name}, {name}", each))
        elif each is not None:
            figures.append(each)
    if isinstance(theirs[0], Timing) and isinstance(theirs[1], Timing):
        slower = round(theirs[1].cpu / theirs[0].cpu, 2)
        figures.append(
            Figure(row, f"{RAGLEAP.name}, among / alone", slower, "x", note="processor time")
        )
    return figures


def _searched(run: Run, name: str, rows: int, *, tenants: int, questions: list[str]) -> Timing:
    place = run.place(name)
    fill(place, rows, tenants)
    with _store(run, place) as store:
        return timed(_search(store, questions), run.calls)


def _store(run: Run, place: Path) -> SQLiteStore:
    return SQLiteStore(place / "speed.db", synchronous=run.synchronous)


def _search(store: SQLiteStore, questions: list[str]) -> Callable[[int], object]:
    scope = Scope("tenant0", subject="u")
    return lambda call: store.search(scope, questions[call % len(questions)], k=5)


def fill(place: Path, rows: int, tenants: int) -> None:
    """``rows`` entries in turn over the tenants, one subject each."""
    asyncio.run(_filled(place, rows, tenants))


async def _filled(place: Path, rows: int, tenants: int) -> None:
    scopes = [Scope(f"tenant{number}", subject="u") for number in range(tenants)]
    texts = Texts(4).sentences(rows)
    async with AsyncSQLiteStore(place / "speed.db", synchronous="NORMAL") as store:
        for part in chunks(rows, _TOGETHER):
            await asyncio.gather(
                *(store.entries.add(scopes[number % tenants], texts[number]) for number in part)
            )


def _peer(
    run: Run, row: str, rows: int, *, tenants: int, questions: list[str]
) -> Timing | Figure | None:
    asked = run.shared(rows, questions=questions, vectors=False) | {
        "what": "search",
        "tenants": tenants,
        "synchronous": run.synchronous,
        "place": str(run.place(f"ragleap-{rows}-{tenants}")),
    }
    found: list[Timing] = []

    def read(answer: dict[str, Any]) -> list[Figure]:
        found.append(Timing.of(answer["wall"], answer["cpu"]))
        return []

    failed = run.of_peer(row, RAGLEAP, asked, read)
    return found[0] if found else next(iter(failed), None)
