"""Recalls of several clients, paced together, over many tenants."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from benchmarks.postgres.filling import question, unit_vector
from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.stores.postgres import PostgresStore

_SCOPES = (MemoryScope.SESSION, MemoryScope.USER, MemoryScope.PROJECT)


@dataclass(slots=True)
class Latencies:
    """Milliseconds from when a recall was due, so that waiting behind others counts."""

    values: list[float] = field(default_factory=list[float])

    def quantile(self, share: float) -> float:
        """The value below which `share` of them lie."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def summary(self) -> dict[str, float]:
        """What is printed of them."""
        return {
            "recalls": len(self.values),
            "p50_ms": round(self.quantile(0.50), 2),
            "p95_ms": round(self.quantile(0.95), 2),
            "p99_ms": round(self.quantile(0.99), 2),
        }


async def recall(store: PostgresStore, tenant: int, pick: random.Random) -> int:
    """One recall as the context builder makes it, both lanes, the learned ranking."""
    owner = MemoryOwner(
        f"tenant-{tenant}", user_id="ana", principal_id="ana", project_id="p", session_id="s"
    )
    found = await store.memories.candidates(
        owner,
        question(pick),
        embedding=unit_vector(pick.randrange(10_000)),
        scopes=_SCOPES,
        memory_types=tuple(MemoryType),
        messages="user",
        limit=100,
    )
    return len(found)


async def paced(
    store: PostgresStore, *, tenants: int, clients: int, rate: float, seconds: float
) -> Latencies:
    """`clients` clients that make `rate` recalls a second together, of random tenants."""
    latencies = Latencies()
    begin = time.perf_counter() + 0.1
    gap = clients / rate

    async def client(number: int) -> None:
        pick = random.Random(number)
        for turn in range(int(seconds / gap)):
            due = begin + turn * gap + number * gap / clients
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            assert await recall(store, pick.randint(1, tenants), pick)
            latencies.values.append((time.perf_counter() - due) * 1000)

    await asyncio.gather(*(client(number) for number in range(clients)))
    return latencies


async def warmed(store: PostgresStore, tenants: int) -> float:
    """Load every tenant's image once; milliseconds a tenant."""
    pick, begin = random.Random(0), time.perf_counter()
    for tenant in range(1, tenants + 1):
        await recall(store, tenant, pick)
    return (time.perf_counter() - begin) * 1000 / tenants
