"""One transaction as a job sees it: named statements within one tenant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from psycopg import AsyncConnection

from muniment.stores.postgres.statements import SQL

Answer = TypeVar("Answer")
Row = tuple[Any, ...]


class Session:
    """Runs statements by name; `tenant` is given to each of them."""

    __slots__ = ("_connection", "tenant")

    def __init__(self, connection: AsyncConnection[Row], tenant: str) -> None:
        self._connection = connection
        self.tenant = tenant

    async def all(self, name: str, values: Mapping[str, Any]) -> list[Row]:
        """Every row of the statement's answer."""
        query = SQL[name]
        cursor = await self._connection.execute(query, self._filled(values), binary=True)
        return await cursor.fetchall()

    async def one(self, name: str, values: Mapping[str, Any]) -> Row | None:
        """The first row, None where there is none."""
        rows = await self.all(name, values)
        return rows[0] if rows else None

    async def run(self, name: str, values: Mapping[str, Any]) -> int:
        """How many rows the statement changed."""
        query = SQL[name]
        return (await self._connection.execute(query, self._filled(values))).rowcount

    async def run_many(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """The statement once a row, sent together."""
        query = SQL[name]
        async with self._connection.cursor() as cursor:
            await cursor.executemany(query, [self._filled(values) for values in rows])

    def _filled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {**values, "tenant": self.tenant}


Job = Callable[[Session], Awaitable[Answer]]
