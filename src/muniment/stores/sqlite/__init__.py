"""The embedded default: everything in one SQLite file."""

from muniment.stores.sqlite.blocking import SQLiteStore
from muniment.stores.sqlite.sharded import ShardedStore
from muniment.stores.sqlite.store import AsyncSQLiteStore

__all__ = ["AsyncSQLiteStore", "SQLiteStore", "ShardedStore"]
