"""Vacuuming: what deleted and changed rows still hold is given up by the tables."""

from __future__ import annotations

import psycopg
from psycopg.errors import Diagnostic

from muniment.errors import MemoryStoreError
from muniment.stores.postgres import connections
from muniment.stores.postgres.errors import explained

_VACUUM = (
    b"VACUUM (ANALYZE) muniment.audience, muniment.memory, muniment.conversation,"
    b" muniment.message, muniment.working, muniment.derivation, muniment.served,"
    b" muniment.completion_lease, muniment.keyed_request, muniment.staged"
)


async def vacuum(url: str) -> None:
    """Vacuum every table, beside whatever else goes on; as long as it takes.

    MemoryStoreError where the login may not (PostgreSQL 16 lets only the tables' owner).
    """
    refused: list[str] = []

    def heard(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            refused.append(notice.sqlstate or "")

    connection = await connections.connect(url)
    connection.add_notice_handler(heard)
    try:
        await connection.execute(_VACUUM)
    except psycopg.Error as error:
        raise explained(error) from None
    finally:
        await connection.close()
    if refused:
        raise MemoryStoreError("this login may not vacuum the tables: let their owner do it")
