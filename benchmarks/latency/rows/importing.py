"""Bulk import: every line parsed, validated like an ``add``, indexed and stored, or none is."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.latency.figures import US, Figure
from benchmarks.latency.rows.search import fill
from benchmarks.latency.settings import Run
from benchmarks.latency.texts import Texts
from muniment import Scope, SQLiteStore

_ENTRIES = 20_000
_TARGET = 15_000


def measure(run: Run) -> list[Figure]:
    """Entries a second, from a file that this package exported; no peer has an import."""
    row, entries = f"import, {_ENTRIES:,} entries, validated", run.size(_ENTRIES)
    place = run.place("import")
    fill(place, 500, tenants=1)
    file = _exported(place, entries)
    figures = []
    for name, options in (("", {}), (", duplicates not looked for", {"skip_duplicates": False})):
        with SQLiteStore(run.place(f"import{len(name)}") / "speed.db") as store:
            begun, worked = time.perf_counter(), time.process_time()
            done = store.import_file(Scope("tenant0"), file, **options)
            wall, cpu = time.perf_counter() - begun, time.process_time() - worked
        rate = done.imported / wall
        note = f"{done.imported / cpu:,.0f} a second of processor time"
        reached = rate >= _TARGET
        figures.append(Figure(row, US + name, round(rate), "/s", f"{_TARGET:,}/s", reached, note))
    return figures


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
