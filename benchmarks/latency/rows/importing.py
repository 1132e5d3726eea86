"""Bulk import: every line parsed, validated like an ``add``, indexed and stored, or none is.

Each import goes into a new store; both kinds in turn.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.latency.figures import US, Figure
from benchmarks.latency.rows.search import fill
from benchmarks.latency.settings import Run
from benchmarks.latency.texts import Texts
from benchmarks.latency.timing import Timing, timed_in_turn
from muniment import Scope, SQLiteStore

_ENTRIES = 20_000
_TARGET = 15_000
_IMPORTS = 5
_KINDS: dict[str, dict[str, Any]] = {
    "": {},
    ", duplicates not looked for": {"skip_duplicates": False},
}


def measure(run: Run) -> list[Figure]:
    """Entries a second, from a file that this package exported; no peer has an import."""
    entries = run.size(_ENTRIES)
    place = run.place("import")
    fill(place, 500, tenants=1)
    file = _exported(place, entries)
    with ExitStack() as opened:
        calls = []
        for kind, options in enumerate(_KINDS.values()):
            places = [run.place(f"import-{kind}-{number}") for number in range(_IMPORTS)]
            stores = [opened.enter_context(SQLiteStore(each / "speed.db")) for each in places]
            calls.append(partial(_import, stores, file, options))
        timings = timed_in_turn(calls, _IMPORTS, warm=0)
    return [_told(name, entries, timing) for name, timing in zip(_KINDS, timings, strict=True)]


def _import(stores: list[SQLiteStore], file: Path, options: dict[str, Any], number: int) -> None:
    stores[number].import_file(Scope("tenant0"), file, **options)


def _told(name: str, entries: int, timing: Timing) -> Figure:
    middle, best, cpu = (1000 * entries / each for each in (timing.p50, timing.least, timing.cpu))
    return Figure(
        f"import, {_ENTRIES:,} entries, validated",
        US + name,
        round(middle),
        "/s",
        f"{_TARGET:,}/s",
        middle >= _TARGET,
        f"median of {timing.calls}, best {best:,.0f}; {cpu:,.0f} a second of processor time",
        asdict(timing),
    )


def _exported(place: Path, entries: int) -> Path:
    """A file of ``entries`` lines as ``export_file`` writes them, every text and id its own."""
    with SQLiteStore(place / "speed.db") as store:
        store.export_file(Scope("tenant0"), place / "small.jsonl")
    header, *lines = (place / "small.jsonl").read_text().splitlines()
    texts = Texts(5)
    made = [json.dumps(json.loads(header) | {"count": entries})]
    for number in range(entries):
        entry = json.loads(lines[number % len(lines)])
        entry["id"] = f"{entry['id'][:-8]}{number:08x}"
        entry["text"] = texts.sentence()
        made.append(json.dumps(entry))
    file = place / "large.jsonl"
    file.write_text("\n".join(made) + "\n")
    return file
