"""Migrations of PostgreSQL: from every earlier schema, twice, at once, and beside older code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from muniment.domain.visibility import message_audience
from muniment.errors import MemoryStoreError
from muniment.stores.postgres import PostgresStore
from muniment.stores.postgres.audiences import digest_of
from muniment.stores.postgres.migrate import migrate, migrations, schema_version
from muniment.stores.postgres.session import Session
from muniment.stores.postgres.statements import SQL
from muniment.testing import Capability, Kit
from muniment.testing.kit import person
from muniment.testing.registry import specs
from tests.servers import databases
from tests.servers.postgres_program import started

ANA = person()
NEWEST = schema_version()


@pytest.fixture
def bare() -> Iterator[str]:
    """A database in which nothing is, for its owner."""
    databases.DATABASES.lend()  # the application's login is there by then
    name = f"{databases.prefix()}_bare_{uuid4().hex[:8]}"
    databases.create(name)
    yield databases.owner_url(name)
    databases.drop(name)


def _login(owner: str) -> str:
    return databases.login_url(databases.name_of(owner))


def _first_rows(url: str) -> None:
    """A memory, a conversation and a message, as the first schema holds them."""
    user = '["user", "acme", "ana"]'
    talk = message_audience("acme", "ana")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = muniment, public")
        for number, key, messages in ((1, user, False), (2, talk, True)):
            connection.execute(
                "INSERT INTO audience (tenant_id, id, digest, key, messages, shared, user_id,"
                " version) VALUES ('acme', %s, %s, %s, %s, false, 'ana', 5)",
                (number, digest_of(key), key, messages),
            )
        connection.execute(
            "INSERT INTO memory (tenant_id, audience, seq, changed, memory_id, scope,"
            " memory_type, user_id, principal_id, content, metadata, importance, created_at,"
            " updated_at, source_message_ids, derived_from, entity_ids, digest, trust, terms,"
            " marks, length, tokens) VALUES ('acme', 1, 1, 5, 'm1', 'user', 'fact', 'ana', 'ana',"
            " 'zebra', '{}', 0.5, 0, 0, '[]', '[]', '[]', 'd', 0, '', 0, 0, 2)"
        )
        connection.execute(
            "INSERT INTO conversation (tenant_id, audience, id, user_id, session_id, kind,"
            " created_at) VALUES ('acme', 2, 1, 'ana', 's1', 'chat', 0)"
        )
        connection.execute(
            "INSERT INTO message (tenant_id, audience, seq, changed, conversation, message_id,"
            " arrived_at, role, content, created_at, partial)"
            " VALUES ('acme', 2, 2, 5, 1, 'g1', 0, 'user', 'hello', 0, 0)"
        )


@pytest.mark.parametrize("version", range(1, NEWEST))
async def test_every_earlier_schema_is_brought_to_the_newest_with_its_rows(
    bare: str, version: int
) -> None:
    scripts = {number: text for number, text in migrations().items() if number <= version}
    assert await migrate(bare, scripts=scripts) == (0, version)
    _first_rows(bare)
    assert await migrate(bare) == (version, NEWEST)
    async with _kit(_login(bare)) as kit:
        assert await kit.found(ANA) == ["zebra"]
        assert await kit.said(ANA) == ["hello"]
        assert await kit.store.reindex() == 1
        assert await kit.found(ANA, "zebra") == ["zebra"]
        await kit.say(ANA, "more")
        assert await kit.said(ANA) == ["hello", "more"]


def _kit(url: str) -> AsyncIterator[Kit]:
    made: AsyncIterator[Kit] = Kit.of(
        lambda clock, embedder, **options: PostgresStore(
            url, clock=clock, embedder=embedder, timeout_seconds=60, **options
        )
    )
    return made


async def test_migrating_again_changes_nothing(bare: str) -> None:
    assert await migrate(bare) == (0, NEWEST)
    assert await migrate(bare) == (NEWEST, NEWEST)


async def test_several_at_once_migrate_once(bare: str) -> None:
    answers = await asyncio.gather(*(migrate(bare) for _ in range(4)))
    assert sorted(answers) == [(0, NEWEST), *[(NEWEST, NEWEST)] * 3]


async def test_a_migration_that_fails_leaves_the_database_as_it_was(bare: str) -> None:
    broken = {**migrations(), NEWEST + 1: "CREATE TABLE half (a int); SELECT nothing_like_it();"}
    with pytest.raises(MemoryStoreError):
        await migrate(bare, scripts=broken)
    found = databases.execute(bare, "SELECT to_regclass('muniment.memory')")
    assert found == [(None,)]


async def test_older_code_works_on_a_schema_that_says_so(bare: str) -> None:
    later = "-- oldest code: 1\nALTER TABLE memory ADD COLUMN colour text;"
    await migrate(bare, scripts={**migrations(), NEWEST + 1: later})
    async with _kit(_login(bare)) as kit:
        await kit.save(ANA, "zebra")
        assert await kit.found(ANA, "zebra") == ["zebra"]


async def test_older_code_refuses_a_schema_that_is_beyond_it(bare: str) -> None:
    later = f"-- oldest code: {NEWEST + 1}\nALTER TABLE memory RENAME content TO text;"
    await migrate(bare, scripts={**migrations(), NEWEST + 1: later})
    with pytest.raises(MemoryStoreError, match="install a newer muniment"):
        await PostgresStore(_login(bare)).open()
    with pytest.raises(MemoryStoreError, match="install a newer muniment"):
        await migrate(bare)


async def test_running_code_goes_on_while_the_schema_is_migrated(bare: str) -> None:
    await migrate(bare)
    async with _kit(_login(bare)) as kit:
        await kit.save(ANA, "before")
        later = "-- oldest code: 1\nALTER TABLE memory ADD COLUMN colour text DEFAULT 'red';"
        moving = asyncio.ensure_future(migrate(bare, scripts={**migrations(), NEWEST + 1: later}))
        for number in range(20):
            await kit.save(ANA, f"row {number}")
        await moving
        assert await kit.store.count(ANA) == 0  # the owner names a session; these are the user's
        assert len(await kit.found(ANA, limit=100)) == 21


async def test_a_login_that_owns_nothing_cannot_migrate(bare: str) -> None:
    with pytest.raises(MemoryStoreError, match="lacks a right"):
        await migrate(_login(bare))


async def test_a_login_outside_the_role_is_told_what_to_grant(bare: str) -> None:
    await migrate(bare)
    login = f"{databases.prefix()}_outsider"
    databases.execute(bare, f"CREATE ROLE {login} LOGIN PASSWORD 'for tests only'")
    try:
        url = _login(bare).replace(databases.LOGIN, login)
        with pytest.raises(MemoryStoreError, match="GRANT muniment_app"):
            await PostgresStore(url).open()
    finally:
        databases.execute(bare, f"DROP ROLE {login}")


async def test_an_administrators_login_is_bound_by_row_security_all_the_same(
    bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(bare)
    monkeypatch.setitem(SQL, "everything", b"SELECT memory_id FROM memory")
    async with _kit(bare) as kit:
        await kit.save(person("other"), "zebra", "m1")
        core = kit.store._core  # type: ignore[attr-defined]

        async def everything(session: Session) -> list[Any]:
            return await session.all("everything", {})

        assert await core.read("acme", everything) == []
        assert await core.read("other", everything) == [("m1",)]
        assert await core.read("acme", everything, seconds=9.0) == []
        assert await core.write("acme", everything) == []


async def test_tables_are_divided_by_tenant_and_a_query_reads_one_part(bare: str) -> None:
    await migrate(bare, partitions=4)
    async with _kit(_login(bare)) as kit:
        for number in range(12):
            await kit.save(person(f"tenant-{number}"), f"zebra {number}")
    parts = databases.execute(bare, "SELECT DISTINCT tableoid::regclass::text FROM muniment.memory")
    assert len(parts) > 1
    plan = databases.execute(
        bare, "EXPLAIN SELECT 1 FROM muniment.memory WHERE tenant_id = 'tenant-1'"
    )
    assert sum("memory_p" in row[0] for row in plan) == 1


DIVIDED = [
    spec
    for spec in specs()
    if spec.capability in (Capability.FACTS, Capability.ERASURE, Capability.TRANSFER)
]


async def test_divided_tables_conform(bare: str) -> None:
    await migrate(bare, partitions=3)
    for spec in DIVIDED:
        databases.execute(bare, databases.EMPTIED)
        async with _kit(_login(bare)) as kit:
            await spec.run(kit)


async def test_postgresql_16_is_supported(tmp_path: Path) -> None:
    process, address = started(tmp_path, version=16)
    try:
        assert await migrate(address, partitions=2) == (0, NEWEST)
        async with _kit(address) as kit:
            await kit.save(ANA, "zebra", "m1")
            await kit.say(ANA, "zebra said")
            assert len(await kit.recalled(ANA, "zebra")) == 2
            fact = await kit.memories.store_fact(kit.memory(ANA, "Ana lives in Rome", "m2"))
            assert fact.created
        databases.execute(address, "CREATE ROLE plain LOGIN IN ROLE muniment_app")
        async with PostgresStore(address.replace("postgres@", "plain@")) as plain:
            with pytest.raises(MemoryStoreError, match="owner"):
                await plain.compact()
    finally:
        process.terminate()
        process.wait()
