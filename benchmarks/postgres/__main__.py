"""`python -m benchmarks.postgres`: recall among a million memories, and 50,000 live runs.

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
from muniment.stores.postgres import PostgresStore
from muniment.stores.postgres.migrate import migrate
from muniment.stores.valkey import ValkeyWorkingMemoryStore
from tests.servers import postgres_program, valkey_program

_SETTINGS = {
    "fsync": "on", "full_page_writes": "on", "shared_buffers": "2GB", "autovacuum": "on",
    "max_wal_size": "8GB", "maintenance_work_mem": "512MB",
}  # fmt: skip
_CLIENTS, _RATE = 8, 50.0
_IMAGES = {"every image in memory": 8 << 30, "512 MiB for images (the default)": 512 << 20}


def main() -> None:
    """Measure, print a table, write JSON."""
    given = _arguments()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = given.postgres or stack.enter_context(_postgres(folder))
        valkey = given.valkey or stack.enter_context(_valkey(folder))
        found = asyncio.run(_measured(given, postgres, valkey))
    print(json.dumps(found, indent=2))
    if given.output:
        Path(given.output).write_text(json.dumps(found, indent=2) + "\n", "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres")
    parser.add_argument("--valkey")
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--live", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--output")
    return parser.parse_args()


@contextlib.contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    process, address = postgres_program.started(folder / "pg", settings=_SETTINGS)
    try:
        yield address
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


async def _measured(given: argparse.Namespace, postgres: str, valkey: str) -> dict[str, Any]:
    await migrate(postgres)
    filling.fill(postgres, given.tenants, given.rows)
    found: dict[str, Any] = {
        "machine": {
            "cores": os.cpu_count(),
            "load before": round(os.getloadavg()[0], 1),
            "python": platform.python_version(),
        },
        "memories": given.tenants * given.rows,
        "tenants": given.tenants,
        "clients": _CLIENTS,
        "recalls a second": _RATE,
    }
    for name, image_bytes in _IMAGES.items():
        found[name] = await _recalls(given, postgres, image_bytes)
    async with PostgresStore(postgres) as store:
        found["working memory, PostgreSQL"] = await working.updates(store.working, given.live)
    async with ValkeyWorkingMemoryStore(valkey) as store:
        found["working memory, Valkey"] = await working.updates(store, given.live)
    return found


async def _recalls(given: argparse.Namespace, url: str, image_bytes: int) -> dict[str, Any]:
    async with PostgresStore(url, image_bytes=image_bytes) as store:
        cold = await recalling.warmed(store, given.tenants)
        latencies = await recalling.paced(
            store, tenants=given.tenants, clients=_CLIENTS, rate=_RATE, seconds=given.seconds
        )
    return {"first recall of a tenant, ms": round(cold, 2), **latencies.summary()}


if __name__ == "__main__":
    main()
