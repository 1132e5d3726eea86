"""``make bench``: footprint, speed beside peers, and the recall tables of a named LoCoMo file."""

from __future__ import annotations

import argparse
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", help="a file in the LoCoMo format, for the recall table")
options = parser.parse_args()


def run(*arguments: str) -> None:
    """One benchmark in its own process, so that none warms up another."""
    print(f"== {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", *arguments], check=True)  # noqa: S603


run("benchmarks.footprint")
run("benchmarks.latency", "--out", ".bench/results")
TYPED = "benchmarks/quality/data/typed.jsonl"
for ranking in ("hybrid", "learned"):
    run("benchmarks.quality", TYPED, "--at-the-end", "--ranking", ranking, "--k", "1", "6")
if options.data:
    run("benchmarks.quality", options.data, "--embedder", "none", "--stable", "1000")
    run("benchmarks.quality", options.data, "--embedder", "local", "--ablate")
else:
    print("== benchmarks.quality: not run; name a LoCoMo file with BENCH_DATA=...")
