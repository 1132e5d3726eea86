"""Extraction and the agent's tools on the stores of this package: one live fact, one successor."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    AgentMemoryTools,
    AsyncSQLiteStore,
    ConversationMessage,
    InMemoryStore,
    Memory,
    MemoryExtractor,
    MemoryOwner,
    MemoryPolicy,
    MemoryQuery,
    MemoryScope,
    MemoryType,
    Trust,
    content_hash,
)
from tests.doubles.proposing_model import ProposingModel, proposed

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
ANA = MemoryOwner("acme", project_id="apollo", principal_id="key-1", user_id="ana", session_id="s")
BOB = MemoryOwner("acme", project_id="apollo", user_id="bob", session_id="t")


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "memory":
        yield InMemoryStore(clock=clock)
        return
    async with AsyncSQLiteStore(tmp_path / "m.db", clock=clock) as opened:
        yield opened


def turn(text: str, key: str = "m1") -> tuple[ConversationMessage, ...]:
    return (ConversationMessage(key, "user", text, START),)  # type: ignore[arg-type]


def label(memory: Memory) -> str:
    return content_hash(memory.content, memory.scope)[:12]


def extractor(store: Any, clock: Clock, *facts: dict[str, Any], **options: Any) -> MemoryExtractor:
    policy = options.pop("policy", MemoryPolicy())
    return MemoryExtractor(
        policy=policy,
        memories=store.memories,
        model=ProposingModel(*facts),
        clock=clock,
        **options,
    )


async def current(store: Any, owner: MemoryOwner = ANA) -> list[str]:
    rows: Sequence[Memory] = await store.memories.search(MemoryQuery(owner))
    return sorted(row.content for row in rows)


async def test_a_fact_changes_and_its_history_stays(store: Any, clock: Clock) -> None:
    (oslo,) = await extractor(store, clock, proposed("The user lives in Oslo")).extract(
        ANA, messages=turn("I live in Oslo")
    )
    clock.now += timedelta(days=1)
    change = proposed("The user lives in Rome", replaces=label(oslo))
    (rome,) = await extractor(store, clock, change).extract(
        ANA, messages=turn("I live in Rome now, not in Oslo", "m2")
    )
    assert await current(store) == ["The user lives in Rome"]
    closed = await store.memories.get(ANA, oslo.memory_id)
    assert (closed.invalid_at, closed.superseded_by) == (rome.valid_from, rome.memory_id)
    before = await store.memories.search(MemoryQuery(ANA, as_of=START))
    assert [row.content for row in before] == ["The user lives in Oslo"]


async def test_a_change_within_the_same_instant_is_current(store: Any, clock: Clock) -> None:
    (oslo,) = await extractor(store, clock, proposed("The user lives in Oslo")).extract(
        ANA, messages=turn("I live in Oslo")
    )
    change = proposed("The user lives in Rome", replaces=label(oslo))
    await extractor(store, clock, change).extract(ANA, messages=turn("Oslo to Rome", "m2"))
    assert await current(store) == ["The user lives in Rome"]


async def test_a_retry_after_a_change_brings_nothing_back(store: Any, clock: Clock) -> None:
    first = extractor(store, clock, proposed("The user lives in Oslo"))
    (oslo,) = await first.extract(ANA, messages=turn("I live in Oslo"))
    change = proposed("The user lives in Rome", replaces=label(oslo))
    again = extractor(store, clock, change)
    assert len(await again.extract(ANA, messages=turn("Oslo to Rome", "m2"))) == 1
    assert await first.extract(ANA, messages=turn("I live in Oslo")) == ()
    assert await again.extract(ANA, messages=turn("Oslo to Rome", "m2")) == ()
    assert await current(store) == ["The user lives in Rome"]


async def test_the_same_fact_said_again_later_is_one_fact(store: Any, clock: Clock) -> None:
    extract = extractor(store, clock, proposed("The user lives in Oslo"))
    assert len(await extract.extract(ANA, messages=turn("I live in Oslo"))) == 1
    clock.now += timedelta(days=3)
    assert await extract.extract(ANA, messages=turn("Oslo is home", "m2")) == ()
    assert len(await current(store)) == 1


async def test_two_users_with_the_same_fact_have_one_each(store: Any, clock: Clock) -> None:
    extract = extractor(store, clock, proposed("The user lives in Oslo"))
    assert len(await extract.extract(ANA, messages=turn("I live in Oslo"))) == 1
    assert len(await extract.extract(BOB, messages=turn("I live in Oslo"))) == 1


async def test_a_reference_to_another_users_memory_does_nothing(store: Any, clock: Clock) -> None:
    (theirs,) = await extractor(store, clock, proposed("The user lives in Oslo")).extract(
        BOB, messages=turn("I live in Oslo")
    )
    change = proposed("The user lives in Rome", replaces=label(theirs))
    model = extractor(store, clock, change)
    assert len(await model.extract(ANA, messages=turn("not Oslo, Rome"))) == 1
    assert await current(store, BOB) == ["The user lives in Oslo"]
    assert model.counts.ignored_references == 1


async def test_the_trust_of_an_owner_is_not_overruled(store: Any, clock: Clock) -> None:
    given = Memory(
        memory_id="given",
        scope=MemoryScope.USER,
        memory_type=MemoryType.FACT,
        owner=ANA,
        content="The user lives in Oslo",
        created_at=START,
        trust=Trust.OWNER,
    )
    await store.memories.save(given)
    change = proposed("The user lives in Rome", replaces=label(given))
    (rome,) = await extractor(store, clock, change).extract(ANA, messages=turn("Oslo? Rome!"))
    assert rome.metadata["conflicts_with"] == "given"
    assert len(await current(store)) == 2


async def test_an_echo_of_a_saved_memory_is_no_new_fact(store: Any, clock: Clock) -> None:
    await store.memories.save(
        Memory(
            memory_id="given",
            scope=MemoryScope.TENANT,
            memory_type=MemoryType.FACT,
            owner=ANA,
            content="The office closes at five",
            created_at=START,
        )
    )
    extract = extractor(store, clock, proposed("The office closes at five", scope="session"))
    assert await extract.extract(ANA, messages=turn("So the office closes at five")) == ()
    (row,) = await store.memories.search(MemoryQuery(ANA))
    assert row.trust is Trust.UNTRUSTED


async def letters(text: str) -> tuple[float, ...]:
    """A vector of letter counts: word order does not matter to it."""
    return tuple(1.0 + text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz")


async def test_a_restatement_is_found_among_the_rows_themselves(store: Any, clock: Clock) -> None:
    extract = extractor(store, clock, proposed("The user likes green tea"), embedder=letters)
    assert len(await extract.extract(ANA, messages=turn("I like green tea"))) == 1
    again = extractor(store, clock, proposed("Green tea the user likes"), embedder=letters)
    assert await again.extract(ANA, messages=turn("green tea I like", "m2")) == ()
    tools = AgentMemoryTools(ANA, store.memories, MemoryPolicy(), embedder=letters, clock=clock)
    kept = await tools.manage({"content": "tea, green, the user likes"})
    assert kept["status"] == "exists"


async def test_agent_and_extraction_share_one_fact(store: Any, clock: Clock) -> None:
    tools = AgentMemoryTools(ANA, store.memories, MemoryPolicy(), clock=clock)
    kept = await tools.manage({"content": "The user lives in Oslo"})
    extract = extractor(store, clock, proposed("The user lives in Oslo"))
    assert await extract.extract(ANA, messages=turn("I live in Oslo")) == ()
    found = await tools.search({"query": "where in Oslo?"})
    assert [memory["id"] for memory in found["memories"]] == [kept["memory_id"]]


async def test_eight_at_once_store_one_fact_and_one_successor(store: Any, clock: Clock) -> None:
    (oslo,) = await extractor(store, clock, proposed("The user lives in Oslo")).extract(
        ANA, messages=turn("I live in Oslo")
    )
    clock.now += timedelta(days=1)
    change = proposed("The user lives in Rome", replaces=label(oslo))
    stored = await asyncio.gather(
        *(
            extractor(store, clock, change).extract(
                ANA, messages=turn("not Oslo but Rome", f"m{worker % 2}")
            )
            for worker in range(8)
        )
    )
    assert sum(map(len, stored)) == 1
    assert await current(store) == ["The user lives in Rome"]


async def test_two_connections_store_each_fact_once(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "shared.db"
    facts = [proposed(f"The user likes tea number {number}") for number in range(5)]
    async with AsyncExitStack() as opened:
        one = await opened.enter_async_context(AsyncSQLiteStore(path, clock=clock))
        two = await opened.enter_async_context(AsyncSQLiteStore(path, clock=clock))
        stored = await asyncio.gather(
            *(
                extractor(store, clock, *facts).extract(ANA, messages=turn("tea"))
                for store in (one, two) * 4
            )
        )
        assert sum(map(len, stored)) == 5
        assert len(await current(one)) == 5
        assert await current(one) == await current(two)


_WORKER = """
import asyncio, sys
from datetime import UTC, datetime
from muniment import AsyncSQLiteStore, ConversationMessage, MemoryExtractor, MemoryOwner
from muniment import MemoryPolicy
from tests.doubles.proposing_model import ProposingModel, proposed

async def main():
    owner = MemoryOwner("acme", user_id="ana", session_id="s")
    said = (ConversationMessage("m1", "user", "tea", datetime(2026, 3, 10, tzinfo=UTC)),)
    model = ProposingModel(*(proposed(f"The user likes tea number {n}") for n in range(10)))
    async with AsyncSQLiteStore(sys.argv[1]) as store:
        extractor = MemoryExtractor(policy=MemoryPolicy(), memories=store.memories, model=model)
        runs = (extractor.extract(owner, messages=said) for _ in range(4))
        print(sum(map(len, await asyncio.gather(*runs))))

asyncio.run(main())
"""


async def test_two_at_once_in_two_processes_store_each_fact_once(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    command = (sys.executable, "-W", "error", "-c", _WORKER, str(path))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    workers = [
        await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, env=environment
        )
        for _ in range(2)
    ]
    answers = await asyncio.gather(*(worker.communicate() for worker in workers))
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sum(int(out) for out, _ in answers) == 10
    async with AsyncSQLiteStore(path) as store:
        assert len(await current(store, MemoryOwner("acme", user_id="ana"))) == 10
