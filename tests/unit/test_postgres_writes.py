"""What PostgreSQL is asked for a write."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from muniment import PostgresStore, Scope
from muniment.stores.postgres.session import Session
from tests.servers.databases import DATABASES


async def test_replacing_a_fact_asks_no_more_the_longer_its_history_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: Counter[str] = Counter()
    execute = Session._execute

    async def counted(self: Session, each: Any) -> Any:
        asked[each[0]] += 1
        return await execute(self, each)

    monkeypatch.setattr(Session, "_execute", counted)
    realm = Scope("acme", subject="ana")
    async with PostgresStore(DATABASES.lend(), timeout_seconds=60) as store:
        entry = await store.entries.add(realm, "fact 0")
        costs: list[int] = []
        for number in range(1, 12):
            asked.clear()
            entry = await store.entries.supersede(realm, entry.id, f"fact {number}")
            costs.append(asked.total())
        history = await store.history(realm, entry.id)
    assert len(history) == 12
    assert costs[-1] == costs[1]
