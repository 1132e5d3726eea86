"""The audit log in PostgreSQL: a chain a tenant, written with the change it tells of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import psycopg
import pytest

from muniment.domain.realm import Scope
from muniment.errors import AuditError
from muniment.stores.postgres import PostgresStore
from muniment.testing import Kit
from muniment.testing.kit import person, talk_of
from tests.servers.databases import DATABASES, execute, name_of, owner_url

ANA, BEA = person(), person("other", "bea")


class Audited:
    """A kit with a log, and a way to meddle with its table."""

    def __init__(self, kit: Kit, url: str) -> None:
        self.kit = kit
        self._url = url

    def meddle(self, statement: str) -> None:
        execute(owner_url(name_of(self._url)), statement)

    def lines(self, tenant: str = "acme") -> list[dict[str, object]]:
        query = "SELECT line FROM muniment.audit WHERE tenant_id = %(t)s ORDER BY sequence"
        rows = execute(owner_url(name_of(self._url)), query, {"t": tenant})
        return [json.loads(row[0]) for row in rows]

    async def verified(self, receipt: str | None = None) -> tuple[bool, int, str | None]:
        result = await self.kit.store.verify_audit(receipt=receipt)
        assert result is not None
        return result.ok, result.records, result.error


@pytest.fixture
async def audited() -> AsyncIterator[Audited]:
    url = DATABASES.lend()
    async with Kit.of(
        lambda clock, embedder, **_: PostgresStore(url, clock=clock, embedder=embedder, audit=True)
    ) as kit:
        yield Audited(kit, url)


async def test_every_change_is_recorded_in_its_tenants_chain(audited: Audited) -> None:
    await audited.kit.save(ANA, "Ana likes tea", "m1")
    await audited.kit.say(ANA, "hello")
    await audited.kit.memories.delete(ANA, "m1")
    await audited.kit.save(BEA, "Bea likes tea", "m1")
    assert [line["event"] for line in audited.lines()] == [
        "memory.saved", "conversation.created", "conversation.appended", "memory.deleted",
    ]  # fmt: skip
    assert [line["sequence"] for line in audited.lines("other")] == [1]
    assert await audited.verified() == (True, 5, None)


async def test_records_hold_no_text(audited: Audited) -> None:
    await audited.kit.save(ANA, "quokka", "m1")
    await audited.kit.say(ANA, "quokka said")
    assert all("quokka" not in json.dumps(line) for line in audited.lines())


async def test_a_change_that_fails_leaves_no_record(audited: Audited) -> None:
    await audited.kit.say(ANA, "hello")
    before = audited.lines()
    again = audited.kit.message("other words", "id of hello")
    with pytest.raises(ValueError, match="message_id"):
        await audited.kit.conversations.append_messages(talk_of(ANA), [again])
    assert audited.lines() == before


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE muniment.audit SET line = replace(line, 'memory.saved', 'memory.dated')",
        "DELETE FROM muniment.audit WHERE sequence = 2",
        "UPDATE muniment.audit SET sequence = 9 WHERE sequence = 2",
        "INSERT INTO muniment.audit SELECT tenant_id, 4, 'x', hash, line FROM muniment.audit"
        " WHERE sequence = 1",
    ],
)
async def test_a_chain_that_was_meddled_with_is_found(audited: Audited, damage: str) -> None:
    for number in range(3):
        await audited.kit.save(ANA, f"row {number}")
    assert (await audited.verified())[0]
    audited.meddle(damage)
    ok, _, error = await audited.verified()
    assert not ok
    assert error


async def test_a_damaged_end_refuses_writes_and_lets_erasures_go_on(audited: Audited) -> None:
    await audited.kit.save(ANA, "row", "m1")
    audited.meddle("UPDATE muniment.audit SET line = replace(line, 'm1', 'm2')")
    with pytest.raises(AuditError):
        await audited.kit.save(ANA, "another")
    assert await audited.kit.found(ANA) == ["row"]
    assert (await audited.kit.store.erase(Scope("acme"))).entries == 1
    assert await audited.kit.found(ANA) == []


async def test_an_erasure_gives_a_receipt_that_its_record_holds(audited: Audited) -> None:
    await audited.kit.save(ANA, "row")
    result = await audited.kit.store.erase(Scope("acme"))
    assert (await audited.verified(result.receipt))[0]
    forged = f"{str(result.receipt)[:-1]}{'0' if str(result.receipt)[-1] != '0' else '1'}"
    assert not (await audited.verified(forged))[0]


async def test_changes_at_once_make_one_chain(audited: Audited) -> None:
    await asyncio.gather(*(audited.kit.save(ANA, f"row {number}") for number in range(20)))
    await asyncio.gather(*(audited.kit.say(person(user=f"u{n}"), "hello") for n in range(10)))
    assert await audited.verified() == (True, 40, None)


async def test_the_application_can_neither_change_nor_remove_a_record(audited: Audited) -> None:
    await audited.kit.save(ANA, "row")
    prepare = "SET ROLE muniment_app; SELECT set_config('muniment.tenant', 'acme', false)"
    with psycopg.connect(audited._url, autocommit=True) as login:
        login.execute(prepare)
        for statement in ("UPDATE muniment.audit SET line = ''", "DELETE FROM muniment.audit"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                login.execute(statement)


async def test_a_store_without_a_log_verifies_none() -> None:
    async with PostgresStore(DATABASES.lend()) as store:
        assert await store.verify_audit() is None
