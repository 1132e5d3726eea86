"""What a job asks a database: named statements within one tenant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor

from muniment.stores.postgres.pipeline import in_one_message
from muniment.stores.postgres.statements import SQL

Answer = TypeVar("Answer")
Row = tuple[Any, ...]
Asked = tuple[str, Mapping[str, Any]]
"""A statement's name and its values."""


class Session:
    """Runs statements by name; `tenant` is given to each of them.

    With an `opening`, a statement and its values, it goes ahead of whatever is asked and in the
    same message, which is then a transaction of its own. Without one a transaction is open.
    """

    __slots__ = ("_connection", "_opening", "heard", "tenant")

    def __init__(
        self,
        connection: AsyncConnection[Row],
        tenant: str,
        opening: tuple[bytes, Mapping[str, Any]] | None = None,
    ) -> None:
        self._connection = connection
        self._opening = opening
        self.tenant = tenant
        self.heard = opening is None
        """Whether the server has answered anything yet."""

    async def all(self, name: str, values: Mapping[str, Any]) -> list[Row]:
        """Every row of the statement's answer."""
        (rows,) = await self.together((name, values))
        return rows

    async def one(self, name: str, values: Mapping[str, Any]) -> Row | None:
        """The first row, None where there is none."""
        rows = await self.all(name, values)
        return rows[0] if rows else None

    async def together(self, *asked: Asked) -> list[list[Row]]:
        """Every row of each statement's answer; they are asked and answered in one round trip."""
        if self._opening is None and len(asked) == 1:
            cursors = [await self._execute(asked[0])]
        else:
            async with in_one_message(self._connection):
                if self._opening is not None:
                    await self._connection.execute(*self._opening)
                cursors = [await self._execute(each) for each in asked]
        self.heard = True
        return [await cursor.fetchall() for cursor in cursors]

    async def run(self, name: str, values: Mapping[str, Any]) -> int:
        """How many rows the statement changed."""
        query = SQL[name]
        return (await self._connection.execute(query, self._filled(values))).rowcount

    async def run_many(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """The statement once a row, sent together."""
        query = SQL[name]
        async with self._connection.cursor() as cursor:
            await cursor.executemany(query, [self._filled(values) for values in rows])

    async def _execute(self, asked: Asked) -> AsyncCursor[Row]:
        name, values = asked
        query = SQL[name]
        return await self._connection.execute(query, self._filled(values), binary=True)

    def _filled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {**values, "tenant": self.tenant}


Job = Callable[[Session], Awaitable[Answer]]


def numbers(values: Iterable[int]) -> str:
    """An array of integers as a value: written at once, where the driver writes each by itself."""
    return f"{{{','.join(map(str, values))}}}"
