"""Runs in which processes that write are killed, and what is looked at afterwards."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from benchmarks.faults.agreement import disagreements
from benchmarks.faults.journal import Held, State, after, operations
from benchmarks.faults.writing import TENANT, write_until_killed
from muniment import SQLiteStore

_PROCESSES, _THREADS = 2, 3
_LONGEST_SECONDS = 0.6
_START_SECONDS = 300.0


@dataclass(slots=True)
class Report:
    """Counts over all runs; `faults` says what was wrong, and is to be empty."""

    runs: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter[str])
    in_flight: Counter[str] = field(default_factory=Counter[str])
    records: int = 0
    waited: int = 0
    faults: list[str] = field(default_factory=list[str])

    def lines(self) -> list[str]:
        """The report as text."""
        return [
            f"runs: {self.runs}, processes killed: {self.runs * _PROCESSES}",
            f"acknowledged: {self.acknowledged.total()} ({_listed(self.acknowledged)})",
            f"under way at the kill: {self.in_flight.total()} ({_listed(self.in_flight)})",
            f"records in the logs: {self.records}",
            f"runs that left records in the outbox: {self.waited}",
            f"faults: {len(self.faults)}",
            *self.faults,
        ]


def kill_at_random(folder: Path, *, runs: int, seed: int) -> Report:
    """Kill two writing processes in each run; a file and its log serve ten runs."""
    report, chance = Report(), random.Random(seed)
    for run in range(runs):
        place = folder / f"file{run // 10}"
        place.mkdir(exist_ok=True)
        _run(place, f"r{run}", chance, report)
        report.runs += 1
    for place in sorted(folder.iterdir()):
        report.records += len((place / "audit.jsonl").read_bytes().splitlines())
    return report


def _run(folder: Path, name: str, chance: random.Random, report: Report) -> None:
    names = [f"{name}p{number}" for number in range(_PROCESSES)]
    children = [_forked(folder, each, chance.randrange(1 << 30)) for each in names]
    _await_ready([folder / f"{each}.ready" for each in names])
    for child in children:
        time.sleep(chance.random() * _LONGEST_SECONDS)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    report.waited += _waiting(folder) > 0
    SQLiteStore(folder / "memory.db", audit=folder / "audit.jsonl").close()
    found = disagreements(folder / "memory.db", folder / "audit.jsonl")
    found += _damaged(folder)
    for each in names:
        for journal in sorted(folder.glob(f"{each}-*.journal")):
            found += _lost(folder, journal, report)
    report.faults += [f"{name}: {fault}" for fault in found]


def _forked(folder: Path, name: str, seed: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            write_until_killed(folder, name, seed, _THREADS)
        finally:
            os._exit(1)
    return child


def _await_ready(flags: list[Path]) -> None:
    until = time.monotonic() + _START_SECONDS
    while not all(flag.exists() for flag in flags):
        if time.monotonic() > until:
            raise TimeoutError("a writer did not start")
        time.sleep(0.002)


def _waiting(folder: Path) -> int:
    return int(_ask(folder, "SELECT count(*) FROM outbox")[0][0])


def _damaged(folder: Path) -> list[str]:
    checks = ("PRAGMA integrity_check", "PRAGMA foreign_key_check")
    answers = [str(row) for check in checks for row in _ask(folder, check)]
    return [answer for answer in answers if answer != "('ok',)"]


def _lost(folder: Path, journal: Path, report: Report) -> list[str]:
    """What one writer's entries lack or have too much of."""
    done, begun = operations(journal)
    expected: State = {}
    for operation in done:
        expected = after(expected, operation)
        report.acknowledged[operation["op"]] += 1
    stored = _stored(folder, journal.stem)
    if begun is not None:
        report.in_flight[begun["op"]] += 1
        if stored == after(expected, begun):
            return []
    return [] if stored == expected else [_difference(journal.stem, stored, expected, begun)]


def _difference(writer: str, stored: State, expected: State, begun: dict[str, Any] | None) -> str:
    lost, more = expected.keys() - stored.keys(), stored.keys() - expected.keys()
    under_way = None if begun is None else begun["op"]
    return f"{writer}: {len(lost)} lost, {len(more)} too many, under way: {under_way}"


def _stored(folder: Path, subject: str) -> State:
    query = "SELECT memory_id, content, realm_session, superseded_by FROM memory"
    rows = _ask(folder, f"{query} WHERE tenant = ? AND user = ?", (TENANT, subject))
    texts = {row[0]: row[1] for row in rows}
    return {
        text: Held(session, None if replaced_by is None else texts[replaced_by])
        for _, text, session, replaced_by in rows
    }


def _ask(folder: Path, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
    connection = apsw.Connection(str(folder / "memory.db"))
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
