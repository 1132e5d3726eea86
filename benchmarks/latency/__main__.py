"""``python -m benchmarks.latency``: speed and growth, as a table, JSON and plots.

Ratios count: every system runs in the same run on the same machine, in an environment of its own
made from packages in ``.bench``. The machine's load is written down with the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import tempfile
import time
from importlib import import_module
from pathlib import Path

from benchmarks.latency.figures import Figure, as_json, machine, table
from benchmarks.latency.plots import draw
from benchmarks.latency.settings import Run

ROWS = ("recall", "build", "search", "adding", "importing", "working", "cold", "growth")


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--calls", type=int, default=60, help="calls that are timed, a figure")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--no-peers", action="store_true", help="this package alone")
    parser.add_argument("--synchronous", default="FULL", help="SQLite's level, for durable writes")
    parser.add_argument("--out", type=Path, help="a folder for latency.json and the plots")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder:
        run = Run(
            Path(folder),
            calls=options.calls,
            quick=options.quick,
            peers=not options.no_peers,
            synchronous=options.synchronous,
        )
        figures: list[Figure] = []
        for name in options.rows:
            figures += _measured(name, run)
            if options.out:
                _kept(options.out, as_json(figures, run.settings()))
    if options.out:
        _drawn(options.out)


def _kept(folder: Path, written: str) -> None:
    """What is measured so far: a long run that is cut off leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "latency.json").write_text(f"{written}\n")


def _drawn(folder: Path) -> None:
    try:
        for path in draw(folder):
            print(path)
    except ImportError:
        print("no plots: pip install -r benchmarks/requirements.txt")


def _measured(name: str, run: Run) -> list[Figure]:
    begun = time.perf_counter()
    found = import_module(f"benchmarks.latency.rows.{name}").measure(run)
    figures: list[Figure] = asyncio.run(found) if inspect.iscoroutine(found) else found
    load = machine()["load"]
    print(f"== {name}: {time.perf_counter() - begun:.0f} s, load {load}")
    print(table(figures), flush=True)
    return figures


if __name__ == "__main__":
    main()
