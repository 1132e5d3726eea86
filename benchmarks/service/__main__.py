"""Concurrent conversations with the service: what memory adds to the model's time.

``python -m benchmarks.service [--conversations 200] [--seconds 60] [--model-seconds 2]
[--spread 0.5]``

The service, the model and this driver are three processes. Each conversation is one user with a
token of its own, asking again as soon as it has the answer, every second time streamed. Added is
the whole time of a completion, as its client sees it, without what the model took by its own
clock: authentication, lease, history, both messages stored durably, title, and every queue between.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from benchmarks.service.driver import Found, drive

SECRET = "a secret of the benchmark, long enough for HS256"  # noqa: S105
PERCENTILES = (50, 90, 95, 99)


@contextmanager
def _model(seconds: float, spread: float) -> Iterator[tuple[str, int]]:
    """The model's URL and its process."""
    command = [sys.executable, "-m", "benchmarks.service.upstream"]
    command += [str(seconds), str(spread)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1", process.pid
        finally:
            process.terminate()


@contextmanager
def _service(folder: Path, model: str, embedder: str, url: str | None) -> Iterator[tuple[int, int]]:
    """The service's port and its process."""
    log = folder / "service.log"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")},
        "MUNIMENT_DATABASE_URL": url or f"sqlite:///{folder / 'memory.db'}",
        "MUNIMENT_EMBEDDER": embedder,
        "MUNIMENT_PORT": "0",
        "MUNIMENT_AUTH_MODE": "jwt",
        "MUNIMENT_AUTH_SECRET": SECRET,
        "MUNIMENT_MODEL": "m",
        "MUNIMENT_MODEL_BASE_URL": model,
    }
    with log.open("wb") as output:
        command = [sys.executable, "-m", "muniment", "serve"]
        process = subprocess.Popen(command, env=environment, stderr=output)  # noqa: S603
    try:
        yield _port(log), process.pid
    finally:
        process.terminate()
        process.wait()


def _port(log: Path) -> int:
    while True:
        _, found, rest = log.read_text("utf-8").partition("running on http://127.0.0.1:")
        if found and rest[:5].strip():
            return int(rest.split(" ")[0].split("\n")[0])
        time.sleep(0.05)


def _processor_seconds(process: int) -> float:
    """What a process and its threads used so far, from Linux' own books."""
    used = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")


def _report(found: Found, used: dict[str, float], options: argparse.Namespace) -> int:
    both = [*found.added["whole"], *found.added["streamed"]]
    print(f"{options.conversations} conversations for {options.seconds:.0f} s", end=", ")
    print(f"a model that takes {options.model_seconds} s +- {options.spread:.0%}", end=", ")
    print(f"embedder {options.embedder}")
    rate = len(both) / options.seconds
    print(f"answered {len(both)} ({rate:.0f} a second), errors {len(found.errors)}")
    each = ", ".join(f"{name} {value / len(both) * 1000:.2f}" for name, value in used.items())
    print(f"processor time an answer: {each} ms (model and users are not what is measured)")
    for name, values in (("all", both), *found.added.items()):
        ordered = sorted(values)
        told = ", ".join(
            f"p{each} {ordered[min(len(ordered) - 1, len(ordered) * each // 100)] * 1000:.1f}"
            for each in PERCENTILES
            if ordered
        )
        print(f"added, {name}: {told} ms")
    for error in found.errors[:5]:
        print("error:", error)
    return 1 if found.errors else 0


def _load(options: argparse.Namespace, folder: Path) -> tuple[Found, dict[str, float]]:
    """What came back, and the processor seconds of each process meanwhile."""
    with (
        _model(options.model_seconds, options.spread) as (url, model),
        _service(folder, url, options.embedder, options.url) as (port, service),
    ):
        processes = {"service": service, "model": model, "users": os.getpid()}
        before = {name: _processor_seconds(each) for name, each in processes.items()}
        talks = (options.conversations, options.seconds, options.model_seconds)
        found = uvloop.run(drive(port, SECRET, *talks))
        used = {name: _processor_seconds(each) for name, each in processes.items()}
        return found, {name: used[name] - before[name] for name in used}


def main() -> int:
    """Run the load and print what memory added."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--model-seconds", type=float, default=2)
    parser.add_argument(
        "--spread",
        type=float,
        default=0.5,
        help="how much the model's time differs from answer to answer, as a share of it; with 0 "
        "conversations that once met in a queue meet again in each round",
    )
    parser.add_argument("--embedder", default="none", choices=("none", "local", "auto"))
    parser.add_argument("--url", help="the store; by default a SQLite file of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return _report(*_load(options, Path(folder)), options)


if __name__ == "__main__":
    sys.exit(main())
