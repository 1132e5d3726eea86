"""Behind a real pooler in transaction mode: each transaction may get another server connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from muniment.stores.postgres import PostgresStore
from muniment.testing import Capability, Kit
from muniment.testing.kit import StoreMaker, person
from muniment.testing.registry import Spec, specs
from tests.servers import pgbouncer_program
from tests.servers.databases import DATABASES, name_of

pytestmark = pytest.mark.skipif(
    pgbouncer_program.program() is None, reason="PgBouncer is not installed"
)
CONFORM = [
    spec
    for spec in specs()
    if spec.capability
    in (Capability.MEMORIES, Capability.FACTS, Capability.RECALL, Capability.CONVERSATIONS,
        Capability.ERASURE, Capability.TRANSFER_TALKS, Capability.SERVICE)
]  # fmt: skip


@pytest.fixture(scope="module")
def pooler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    DATABASES.lend()  # the application's login is there by then
    process, port = pgbouncer_program.started(Path(tmp_path_factory.mktemp("pgbouncer")))
    yield port
    process.terminate()
    process.wait()


@pytest.fixture
def url(pooler: int) -> str:
    return f"postgresql://any@127.0.0.1:{pooler}/{name_of(DATABASES.lend())}"


def _maker(url: str) -> StoreMaker:
    return lambda clock, embedder, **options: PostgresStore(
        url, clock=clock, embedder=embedder, timeout_seconds=60, **options
    )


@pytest.mark.parametrize("spec", CONFORM, ids=str)
async def test_a_store_behind_a_pooler_conforms(spec: Spec, url: str) -> None:
    async with Kit.of(_maker(url)) as kit:
        await spec.run(kit)


async def test_tenants_that_share_server_connections_see_their_own_rows_alone(url: str) -> None:
    tenants = [person(f"tenant-{number}") for number in range(12)]
    async with Kit.of(_maker(url)) as kit:
        await asyncio.gather(
            *(kit.save(one, f"zebra of {one.tenant_id}", one.tenant_id) for one in tenants)
        )
        for _ in range(5):
            found = await asyncio.gather(*(kit.recalled(one, "zebra") for one in tenants))
            texts = [[hit.memory.content for hit in hits] for hits in found]
            assert texts == [[f"zebra of {one.tenant_id}"] for one in tenants]


async def test_a_server_connection_is_handed_on_without_role_tenant_or_time_limit(
    url: str,
) -> None:
    async with Kit.of(_maker(url)) as kit:
        for number in range(8):
            await kit.save(person(), f"zebra {number}")
            await kit.recalled(person(), "zebra")
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as other:
            for _ in range(4):
                (held,) = other.execute(
                    "SELECT ARRAY[current_setting('role'), current_setting('muniment.tenant',"
                    " true), current_setting('statement_timeout'),"
                    " current_setting('transaction_read_only')]"
                ).fetchall()
                assert held[0] in (["none", "", "0", "off"], ["none", None, "0", "off"])
