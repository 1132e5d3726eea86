"""The in-memory store used by several threads, each with its own event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from muniment.ports import StoredFact
from muniment.stores.in_memory import InMemoryStore
from muniment.testing import Kit
from muniment.testing.kit import person

ANA = person()


async def test_threads_store_a_fact_once_and_lose_no_message() -> None:
    async with Kit.of(lambda clock, embedder: InMemoryStore(clock=clock)) as kit:

        async def work(number: int) -> StoredFact:
            fact = kit.memory(ANA, "Ana lives in Rome", f"m{number}")
            for step in range(5):
                await kit.say(ANA, f"zebra {number} {step}")
                await kit.recalled(ANA, "zebra")
            return await kit.memories.store_fact(fact)

        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda number: asyncio.run(work(number)), range(8)))
        assert sum(answer.created for answer in answers) == 1
        assert len(await kit.said(ANA, limit=1000)) == 40
        assert len(await kit.recalled(ANA, "zebra", limit=1000)) == 40
