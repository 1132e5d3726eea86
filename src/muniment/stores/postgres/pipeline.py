"""Several statements in one message, which a pooler in transaction mode understands as one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection, AsyncPipeline, generators
from psycopg.abc import PQGen


class _UntilTheSync(AsyncPipeline):
    """psycopg's own sends a Flush after the Sync that ends a pipeline. The Sync has flushed
    already. PgBouncer has by then given the server connection back: for the Flush it takes
    another, waits for an answer that a Flush never gets, and so an idle client holds a server
    connection, for which others wait until their time is over."""

    def _fetch_gen(self, *, flush: bool) -> PQGen[None]:
        if flush and self.result_queue:
            yield from generators.send(self.pgconn)
        yield from super()._fetch_gen(flush=False)


@asynccontextmanager
async def in_one_message(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """What is executed in the block is sent together; its answers are there at the end of it."""
    pipeline = _UntilTheSync(connection)
    connection._pipeline = pipeline  # there is no other way to choose its kind
    try:
        async with pipeline:
            yield
    finally:
        connection._pipeline = None
