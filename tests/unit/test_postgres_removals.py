"""PostgreSQL: what erasing many rows and reading a long history ask of the server."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection, AsyncCursor

from muniment import (
    AsyncSQLiteStore,
    Memory,
    MemoryOwner,
    MemoryScope,
    MemoryType,
    PostgresStore,
    Scope,
)
from muniment.governance.events import Records
from tests.servers.databases import DATABASES

ANA = MemoryOwner("acme", user_id="ana")
USER = Scope("acme", subject="ana")
SESSION = Scope("acme", subject="ana", session="s1")
AGENT = Scope("acme", subject="ana", agent="helper")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many statements the server was sent."""
    counted: Counter[str] = Counter()
    execute, executemany = AsyncConnection.execute, AsyncCursor.executemany

    async def one(self: Any, query: Any, *values: Any, **options: Any) -> Any:
        counted["all"] += 1
        return await execute(self, query, *values, **options)

    async def many(self: Any, query: Any, rows: Any, **options: Any) -> None:
        counted["all"] += len(rows)
        await executemany(self, query, rows, **options)

    monkeypatch.setattr(AsyncConnection, "execute", one)
    monkeypatch.setattr(AsyncCursor, "executemany", many)
    return counted


async def _cost(asked: Counter[str], job: Awaitable[Any]) -> int:
    asked.clear()
    await job
    return asked.total()


def _row(name: str, **fields: Any) -> Memory:
    said = {"content": name, "created_at": NOW, "updated_at": NOW, **fields}
    return Memory(name, MemoryScope.USER, MemoryType.FACT, ANA, said.pop("content"), **said)


@pytest.mark.parametrize("line", [False, True], ids=["beside each other", "from each other"])
async def test_a_cascade_asks_no_more_the_more_rows_fall(
    asked: Counter[str], *, line: bool
) -> None:
    costs: list[int] = []
    async with PostgresStore(DATABASES.lend(), timeout_seconds=60, audit=True) as store:
        for size in (10, 20, 40):
            source = await store.entries.add(SESSION, "what was said")
            for number in range(size):
                made = await store.entries.add(USER, f"{number}", derived_from=(source.id,))
                source = made if line else source
            asked.clear()
            result = await store.erase(SESSION, cascade=True)
            costs.append(asked.total())
            assert (result.entries, result.derived) == (1, size)
            assert await store.count(USER) == 0
        verified = await store.verify_audit(receipt=result.receipt)
    assert verified is not None
    assert verified.ok
    assert len(set(costs)) == 1


async def test_what_keeps_a_source_is_unlinked_with_as_many_statements(
    asked: Counter[str],
) -> None:
    costs: list[int] = []
    async with PostgresStore(DATABASES.lend(), timeout_seconds=60) as store:
        stays = await store.entries.add(USER, "what stays")
        for size in (5, 25):
            goes = await store.entries.add(SESSION, f"what goes {size}")
            made = [
                await store.entries.add(USER, f"{size} {n}", derived_from=(goes.id, stays.id))
                for n in range(size)
            ]
            costs.append(await _cost(asked, store.erase(SESSION, cascade=True)))
            for entry in made:
                (left,) = await store.history(USER, entry.id)
                assert left.derived_from == (stays.id,)
    assert costs[0] == costs[1]


async def test_a_history_asks_no_more_the_longer_it_is(asked: Counter[str]) -> None:
    async with PostgresStore(DATABASES.lend(), timeout_seconds=60) as store:
        entry = first = await store.entries.add(USER, "fact 0")
        costs: dict[tuple[str, int], int] = {}
        for number in range(1, 41):
            entry = await store.entries.supersede(USER, entry.id, f"fact {number}")
            if number in {10, 40}:
                for place in (USER, ANA):
                    asked.clear()
                    rows = await store.history(place, first.id)
                    costs[type(place).__name__, number] = asked.total()
                    assert [row.content for row in rows] == [f"fact {n}" for n in range(number + 1)]
    assert costs["Scope", 10] == costs["Scope", 40]
    assert costs["MemoryOwner", 10] == costs["MemoryOwner", 40]


async def test_what_replaced_a_row_that_stays_goes_with_as_many_statements(
    asked: Counter[str],
) -> None:
    costs: list[int] = []
    async with PostgresStore(DATABASES.lend(), timeout_seconds=60) as store:
        for size in (4, 40):
            kept = f"kept {size}"
            names = [kept, *(f"{size} {number}" for number in range(size))]
            for name, after in zip(names, [*names[1:], None], strict=True):
                over = NOW if after else None
                agent = None if name == kept else "helper"
                row = _row(name, agent_id=agent, invalid_at=over, superseded_by=after)
                await store.memories.save(row)
            costs.append(await _cost(asked, store.erase(AGENT)))
            (again,) = await store.history(USER, kept)
            assert (again.invalid_at, again.superseded_by) == (None, None)
    assert costs[0] == costs[1]


@pytest.mark.parametrize("seed", range(12))
async def test_many_rows_go_as_if_one_after_the_other(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite deletes them so: the same rows stay, and the same is noted of each."""
    noted: Counter[tuple[object, ...]] = Counter()

    def note(self: Records, event: str, memory: Memory, **data: Any) -> None:
        noted[event, memory.memory_id, memory.invalid_at, memory.superseded_by] += 1

    monkeypatch.setattr(Records, "record_memory", note)
    rows, realm = _tangled(random.Random(seed)), AGENT
    found: list[object] = []
    for store in (AsyncSQLiteStore(tmp_path / "m.db"), PostgresStore(DATABASES.lend())):
        async with store:
            for row in rows:
                await store.memories.save(row)
            noted.clear()
            result = await store.erase(realm, cascade=True)
            left = [await store.history(USER, row.memory_id) for row in rows]
            found.append((result.entries, result.derived, dict(noted), left))
    assert found[0] == found[1]


def _tangled(made: random.Random) -> list[Memory]:
    """Successions of an agent's rows and others, some of one text, some derived from others."""
    rows: list[Memory] = []
    for number in range(made.randrange(6, 30)):
        after = made.choice(rows).memory_id if rows and made.random() < 0.7 else None
        over = NOW + timedelta(days=made.randrange(9)) if after else None
        sources = made.sample(rows, min(len(rows), made.randrange(3)))
        row = _row(
            f"m{number}",
            content=f"text {made.randrange(8)}",
            agent_id=made.choice(["helper", None]),
            invalid_at=over,
            superseded_by=after,
            derived_from=tuple(source.memory_id for source in sources),
        )
        rows.append(row)
    return rows
