"""A service process for a test: writes without end, and says what was acknowledged.

``python -m tests.faults.postgres_writer URL NAME``: one line a write, until it is interrupted.
"""

from __future__ import annotations

import asyncio
import sys

from muniment.domain.conversation import ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.scope import MemoryScope
from muniment.errors import MemoryStoreError
from muniment.stores.postgres import PostgresStore
from muniment.testing.kit import person, talk_of

ANA = person()


async def main(url: str, name: str) -> None:
    """Facts that the other process stores too, and messages of one's own."""
    async with PostgresStore(url, timeout_seconds=30) as store:
        for number in range(100_000):
            fact = Memory(f"{name}-{number}", MemoryScope.USER, MemoryType.FACT, ANA,
                          f"fact {number}")  # fmt: skip
            said = ConversationMessage(
                f"{name}-{number}", "user", f"said {number}", fact.created_at
            )
            await _acknowledged("fact", number, store.memories.store_fact(fact))
            await _acknowledged(
                "said", number, store.conversations.append_messages(talk_of(ANA), [said])
            )


async def _acknowledged(kind: str, number: int, write: object) -> None:
    try:
        await write  # type: ignore[misc]
    except MemoryStoreError:
        return  # not acknowledged: it may be there or not
    print(kind, number, flush=True)  # noqa: T201 - what the test reads


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
