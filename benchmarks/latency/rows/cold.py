"""Cold starts: importing the package, and what it costs the peers."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.latency.environments import HARBORRAG, MEM0, RAGLEAP, Peer, PeerUnavailable
from benchmarks.latency.figures import US, Figure
from benchmarks.latency.settings import Run

_MODULES = ((RAGLEAP, "ragleap_memory"), (HARBORRAG, "harborrag_memory"), (MEM0, "mem0"))
_ROW = "cold import"
_TARGET_SECONDS = 0.15
_STARTS = 9


def measure(run: Run) -> list[Figure]:
    """Seconds of ``import`` beyond an interpreter that imports nothing."""
    seconds = _seconds(sys.executable, "muniment")
    reached = seconds < _TARGET_SECONDS
    figures = [Figure(_ROW, US, seconds, "s", f"< {_TARGET_SECONDS} s", reached)]
    return figures + ([_of_peer(*each) for each in _MODULES] if run.peers else [])


def _of_peer(peer: Peer, module: str) -> Figure:
    try:
        return Figure(_ROW, peer.name, _seconds(str(peer.interpreter()), module), "s")
    except PeerUnavailable as error:
        return Figure(_ROW, peer.name, None, "s", note=str(error))


def _seconds(python: str, module: str) -> float:
    return round(_started(python, f"import {module}") - _started(python, "pass"), 4)


def _started(python: str, code: str) -> float:
    times = []
    for _ in range(_STARTS):
        begun = time.perf_counter()
        subprocess.run([python, "-c", code], check=True, capture_output=True)  # noqa: S603
        times.append(time.perf_counter() - begun)
    return statistics.median(times)
