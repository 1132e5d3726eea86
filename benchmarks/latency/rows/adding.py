"""Durable ``add``: each is on the disk before the next of the same writer begins."""

from __future__ import annotations

import threading
import time
from operator import itemgetter
from typing import Any
from unittest.mock import patch

from benchmarks.latency.environments import RAGLEAP
from benchmarks.latency.figures import US, Figure
from benchmarks.latency.settings import Run
from benchmarks.latency.texts import Texts
from muniment import Scope, SQLiteStore
from muniment.stores.sqlite.core import Core

_ENTRIES = 4_000
_WRITERS = (1, 8)
_AHEAD = {1: 1.0, 8: 5.0}
_ROUNDS = 5

Rates = dict[str, float]
"""Adds a second of wall and of processor time."""


def measure(run: Run) -> list[Figure]:
    """One writer and eight, at the same level of durability as the peer; medians of rounds that
    take turns with it."""
    texts = Texts(4).sentences(run.size(_ENTRIES))
    ours: dict[int, list[Rates]] = {writers: [] for writers in _WRITERS}
    theirs: dict[int, list[Rates]] = {}
    figures = list[Figure]()
    for number in range(_ROUNDS):
        for writers in _WRITERS:
            ours[writers].append(_rates(run, texts, writers, f"add-{writers}-{number}"))
        figures = _peer(run, len(texts), number, theirs)
    for writers in _WRITERS:
        row = f"add, durable ({run.synchronous}), {writers} writer{'s' * (writers > 1)}"
        figures.append(_figure(row, US, _middle(ours[writers])))
        if writers in theirs:
            peer = _middle(theirs[writers])
            figures += _compared(row, _middle(ours[writers]), peer, _AHEAD[writers])
        with patch.object(Core, "change", _nothing):
            figures.append(
                _figure(row, f"{US}, no database", _rates(run, texts, writers, f"made-{writers}"))
            )
    return figures


def _middle(rounds: list[Rates]) -> Rates:
    return sorted(rounds, key=itemgetter("rate"))[len(rounds) // 2]


async def _nothing(*_asked: object, **_more: object) -> None:
    """In place of the transaction: what is left is what Python's lock lets one thread do alone."""


def _rates(run: Run, texts: list[str], writers: int, place: str) -> Rates:
    scope = Scope("acme", subject="u")
    with SQLiteStore(run.place(place) / "add.db", synchronous=run.synchronous) as store:

        def write(part: list[str]) -> None:
            for text in part:
                store.add(scope, text)

        parts = [texts[start::writers] for start in range(writers)]
        threads = [threading.Thread(target=write, args=(part,)) for part in parts]
        begun, worked = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall, cpu = time.perf_counter() - begun, time.process_time() - worked
    return {"rate": len(texts) / wall, "cpu_rate": len(texts) / cpu}


def _figure(row: str, system: str, rates: Rates) -> Figure:
    note = f"{rates['cpu_rate']:,.0f} a second of processor time"
    return Figure(row, system, round(rates["rate"], 1), "/s", note=note, detail=dict(rates))


def _compared(row: str, ours: Rates, theirs: Rates, ahead: float) -> list[Figure]:
    times = ours["rate"] / theirs["rate"]
    target = "ahead" if ahead == 1 else f"{ahead:g} x"
    ratio = Figure(row, f"{US} / {RAGLEAP.name}", round(times, 2), "x", target, times >= ahead)
    return [_figure(row, RAGLEAP.name, theirs), ratio]


def _peer(run: Run, entries: int, number: int, rates: dict[int, list[Rates]]) -> list[Figure]:
    asked = run.shared(entries, vectors=False) | {
        "what": "add",
        "writers": list(_WRITERS),
        "synchronous": run.synchronous,
        "place": str(run.place(f"ragleap-add-{number}")),
    }

    def read(answer: dict[str, Any]) -> list[Figure]:
        for writers, each in answer["rates"].items():
            rates.setdefault(int(writers), []).append(each)
        return []

    return run.of_peer("add, durable", RAGLEAP, asked, read)
