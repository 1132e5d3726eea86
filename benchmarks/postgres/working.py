"""Working-memory updates with one live run and with 50,000."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.postgres.recalling import Latencies
from muniment.domain.owner import MemoryOwner

_STATE: dict[str, Any] = {"step": 1, "plan": ["look", "ask", "answer"], "notes": "x" * 400}
_MEASURED = 1_000


def _run(number: int) -> MemoryOwner:
    return MemoryOwner(
        f"tenant-{number % 100}", user_id="ana", principal_id="ana", session_id="s",
        run_id=f"r{number}",
    )  # fmt: skip


async def updates(working: Any, live: int) -> dict[str, Any]:
    """Median and tail of an update alone, and beside `live` other runs."""
    await working.put(_run(0), _STATE, ttl_seconds=3600)
    alone = await _timed(working)
    for number in range(1, live + 1):
        await working.put(_run(number), _STATE, ttl_seconds=3600)
    beside = await _timed(working)
    return {"alone": alone, f"beside {live}": beside}


async def _timed(working: Any) -> dict[str, float]:
    latencies = Latencies()
    for _ in range(_MEASURED):
        begin = time.perf_counter()
        await working.put(_run(0), _STATE, ttl_seconds=3600)
        latencies.values.append((time.perf_counter() - begin) * 1000)
    return latencies.summary()
