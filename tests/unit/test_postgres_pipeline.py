"""What goes over the line when several statements are one message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from psycopg import AsyncConnection, errors

from muniment.stores.postgres.pipeline import in_one_message
from tests.servers.databases import owner_url

_LATER = "SELECT pg_sleep(0.002), %s"


@pytest.fixture
async def connection() -> AsyncIterator[AsyncConnection]:
    async with await AsyncConnection.connect(owner_url(), autocommit=True) as opened:
        yield opened


async def test_nothing_follows_the_sync(connection: AsyncConnection, tmp_path: Path) -> None:
    """A pooler takes another server connection for a Flush that comes later."""
    with (tmp_path / "trace").open("wb") as line:
        connection.pgconn.trace(line.fileno())
        for number in range(5):
            async with in_one_message(connection):
                cursors = [await connection.execute(_LATER, [each]) for each in (number, -number)]
            told = [await cursor.fetchone() for cursor in cursors]
            assert [row and row[1] for row in told] == [number, -number]
        connection.pgconn.untrace()
    sent = [each for each in (tmp_path / "trace").read_text().splitlines() if "\tF\t" in each]
    assert sum("Sync" in each for each in sent) == 5
    assert [each for each in sent if "Flush" in each] == []


async def test_a_large_message_is_sent_whole(connection: AsyncConnection) -> None:
    large = "x" * 30_000_000
    async with in_one_message(connection):
        cursors = [await connection.execute("SELECT length(%s)", [large]) for _ in range(2)]
    assert [await cursor.fetchone() for cursor in cursors] == [(len(large),)] * 2


async def test_a_statement_that_fails_leaves_the_connection_usable(
    connection: AsyncConnection,
) -> None:
    async def fail() -> None:
        async with in_one_message(connection):
            await connection.execute("SELECT 1 / 0")
            await connection.execute("SELECT 2")

    with pytest.raises(errors.DivisionByZero):
        await fail()
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert await (await connection.execute("SELECT 3")).fetchone() == (3,)
