"""Kill writing processes at random and say what was lost: nothing, or exit code 1."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.faults.killing import kill_at_random


def main(arguments: list[str] | None = None) -> int:
    """Run as often as asked; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = kill_at_random(Path(folder), runs=chosen.runs, seed=chosen.seed)
    print("\n".join(report.lines()))
    print(f"seconds: {time.monotonic() - began:.0f}")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
