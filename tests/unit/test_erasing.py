"""SQLite: what erasing and counting by realm cost, and what is in memory afterwards."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from muniment import AsyncSQLiteStore, Memory, MemoryOwner, MemoryScope, MemoryType, Scope
from muniment.domain.realm import RealmKey
from muniment.stores.sqlite.statements import covered

BY_USER = (
    "erase_memories",
    "sweep_memories",
    "usage_covered",
    "count_covered",
    "derived_outside",
    "replacements_in_realm",
)


class _NoValues(dict[str, None]):
    def __missing__(self, key: str) -> None:
        return None


@pytest.mark.parametrize("name", BY_USER)
async def test_a_users_realm_is_reached_by_its_own_index(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    await (store := AsyncSQLiteStore(path)).open()
    await store.aclose()
    connection = apsw.Connection(str(path))
    statement = covered(name, RealmKey("acme", "ana"))
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", _NoValues()).fetchall()
    connection.close()
    plan = [str(row[3]) for row in rows]
    assert any("memory_realm (tenant=? AND user=?" in step for step in plan), plan
    assert not [step for step in plan if step.startswith("SCAN memory")]


async def test_a_session_is_found_as_a_source_by_its_own_index(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    await (store := AsyncSQLiteStore(path)).open()
    await store.aclose()
    connection = apsw.Connection(str(path))
    statement = covered("heard_in_realm", RealmKey("acme", "ana"))
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", _NoValues()).fetchall()
    connection.close()
    assert any("memory_source" in str(row[3]) for row in rows), rows


async def test_an_erasure_forgets_the_images_of_what_it_reached_alone(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "m.db") as store:
        owners = [MemoryOwner("acme", user_id=user) for user in ("ana", "bo")]
        for owner in owners:
            row = Memory("m1", MemoryScope.USER, MemoryType.FACT, owner, "a zebra")
            await store.memories.save(row)
            assert await store.memories.candidates(
                owner, "zebra", scopes=tuple(MemoryScope), memory_types=tuple(MemoryType)
            )
        images = store._core.images
        assert len(images._kept) == 2
        await store.erase(Scope("acme", subject="ana"))
        assert len(images._kept) == 1
