"""Recalls of several clients, paced together, over many tenants."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.postgres.filling import question, unit_vector
from benchmarks.postgres.processor import Processor
from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.stores.postgres import PostgresStore

_QUESTIONS = [unit_vector(number) for number in range(500)]  # embedding costs nothing here
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
        embedding=pick.choice(_QUESTIONS),
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


async def alone(
    store: PostgresStore, tenants: Iterable[int], processor: Processor
) -> dict[str, float]:
    """One recall after the other, one a tenant: how long each takes, and what it costs."""
    latencies, pick = Latencies(), random.Random(0)
    processor.begin()
    for tenant in tenants:
        begin = time.perf_counter()
        await recall(store, tenant, pick)
        latencies.values.append((time.perf_counter() - begin) * 1000)
    return latencies.summary() | processor.cost(len(latencies.values))
