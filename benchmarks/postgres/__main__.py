"""`python -m benchmarks.postgres`: recall among a million rows, and 50,000 live runs.

Half of a tenant's rows are memories and half messages, so that the learned ranking is at work.

Servers of its own are started from the test packages; `--postgres` and `--valkey` name others
(an empty database and its owner's login; a database of its own).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.postgres import filling, recalling, working
from benchmarks.postgres.processor import Processor
from muniment.stores.postgres import PostgresStore
from muniment.stores.postgres.images import DEFAULT_BUDGET_BYTES
from muniment.stores.postgres.migrate import migrate
from muniment.stores.valkey import ValkeyWorkingMemoryStore
from tests.servers import postgres_program, valkey_program

_SETTINGS = {
    "fsync": "on", "full_page_writes": "on", "shared_buffers": "2GB", "autovacuum": "on",
    "max_wal_size": "8GB", "maintenance_work_mem": "512MB",
}  # fmt: skip
_CLIENTS, _RATE = 8, 50.0


def main() -> None:
    """Measure, print a table, write JSON."""
    given = _arguments()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = (
            (given.postgres, None) if given.postgres else stack.enter_context(_postgres(folder))
        )
        valkey = given.valkey or stack.enter_context(_valkey(folder))
        found = asyncio.run(_measured(given, server, valkey))
    print(json.dumps(found, indent=2))
    if given.output:
        Path(given.output).write_text(json.dumps(found, indent=2) + "\n", "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres")
    parser.add_argument("--valkey")
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--memories", type=int, default=500, help="of each tenant")
    parser.add_argument("--messages", type=int, default=500, help="of each tenant")
    parser.add_argument("--live", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--output")
    return parser.parse_args()


@contextlib.contextmanager
def _postgres(folder: Path) -> Iterator[tuple[str, int]]:
    process, address = postgres_program.started(folder / "pg", settings=_SETTINGS)
    try:
        yield address, process.pid
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def _valkey(folder: Path) -> Iterator[str]:
    process, address = valkey_program.started(folder)
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


async def _measured(
    given: argparse.Namespace, server: tuple[str, int | None], valkey: str
) -> dict[str, Any]:
    postgres, postmaster = server
    await migrate(postgres)
    filled = filling.fill(postgres, given.tenants, given.memories, given.messages)
    found: dict[str, Any] = {
        "machine": {
            "cores": os.cpu_count(),
            "load before": round(os.getloadavg()[0], 1),
            "python": platform.python_version(),
        },
        "server": "elsewhere" if postmaster is None else _SETTINGS,
        "rows": given.tenants * (given.memories + given.messages),
        "tenants": given.tenants,
        "a tenant": {"memories": given.memories, "messages": given.messages},
        "fill, s": round(filled, 1),
        "clients": _CLIENTS,
        "recalls a second": _RATE,
        "recall": "both lanes, the learned ranking, 100 candidates; embedding excluded",
        "image budget, MiB": DEFAULT_BUDGET_BYTES >> 20,
    }
    found |= await _recalls(given, postgres, Processor(postmaster))
    async with PostgresStore(postgres) as store:
        found["working memory, PostgreSQL"] = await working.updates(store.working, given.live)
    async with ValkeyWorkingMemoryStore(valkey) as store:
        found["working memory, Valkey"] = await working.updates(store, given.live)
    return found


async def _recalls(
    given: argparse.Namespace, url: str, processor: Processor
) -> dict[str, dict[str, float]]:
    """Beginning with no image in memory, then with those that the budget holds."""
    tenants = range(1, given.tenants + 1)

    async def paced(store: PostgresStore) -> dict[str, float]:
        processor.begin()
        latencies = await recalling.paced(
            store, tenants=given.tenants, clients=_CLIENTS, rate=_RATE, seconds=given.seconds
        )
        return latencies.summary() | processor.cost(len(latencies.values))

    async with PostgresStore(url) as store:
        found = {"paced, from a cold start": await paced(store)}
    async with PostgresStore(url) as store:
        found["first recall of each tenant, alone"] = await recalling.alone(
            store, tenants, processor
        )
        found["paced"] = await paced(store)
        found["alone"] = await recalling.alone(store, tenants, processor)
    return found


if __name__ == "__main__":
    main()
