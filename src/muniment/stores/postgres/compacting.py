"""Vacuuming: what deleted and changed rows still hold is given up by the tables."""

from __future__ import annotations

import psycopg
from psycopg.errors import Diagnostic

from muniment.errors import MemoryStoreError
from muniment.stores.postgres import connections
from muniment.stores.postgres.errors import explained

_TABLES = (
    b"muniment.audience, muniment.memory, muniment.conversation, muniment.message,"
    b" muniment.working, muniment.derivation, muniment.served, muniment.completion_lease,"
    b" muniment.keyed_request, muniment.staged"
)


async def vacuum(url: str, *, rewrite: bool) -> None:
    """Vacuum every table, beside whatever else goes on; as long as it takes.

    With `rewrite` each table is written anew, and locked meanwhile. MemoryStoreError where the
    login may not (PostgreSQL 16 lets only the tables' owner).
    """
    refused: list[str] = []

    def heard(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            refused.append(notice.sqlstate or "")

    connection = await connections.connect(url)
    connection.add_notice_handler(heard)
    try:
        await connection.execute(b"VACUUM (ANALYZE%s) " % (b", FULL" if rewrite else b"") + _TABLES)
    except psycopg.Error as error:
        raise explained(error) from None
    finally:
        await connection.close()
    if refused:
        raise MemoryStoreError("this login may not vacuum the tables: let their owner do it")
