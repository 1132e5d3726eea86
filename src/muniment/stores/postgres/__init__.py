"""The PostgreSQL store."""

from __future__ import annotations

from muniment.extras import missing_extra

try:
    from muniment.stores.postgres.store import PostgresStore
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] not in ("psycopg", "psycopg_pool"):
        raise
    raise missing_extra("postgres") from None

__all__ = ["PostgresStore"]
