"""How each store under test is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from muniment.stores.in_memory import InMemoryStore
from muniment.stores.postgres import PostgresStore
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.testing.kit import StoreMaker
from tests.servers.databases import DATABASES

MAKERS: dict[str, Callable[[Path], StoreMaker]] = {
    "in_memory": lambda _: (
        lambda clock, embedder, **options: InMemoryStore(clock=clock, embedder=embedder, **options)
    ),
    "sqlite": lambda folder: (
        lambda clock, embedder, **options: AsyncSQLiteStore(
            folder / "memory.db", clock=clock, embedder=embedder, **options
        )
    ),
    "postgres": lambda _: _postgres(),
}
DURABLE = ("sqlite", "postgres")
# Specs, or whole capabilities, that were written after a store and that it has yet to follow.
BEHIND: dict[str, tuple[str, ...]] = {}


def _postgres() -> StoreMaker:
    """A store on a database of its own, empty at first."""
    url = DATABASES.lend()
    return lambda clock, embedder, **options: PostgresStore(
        url, clock=clock, embedder=embedder, timeout_seconds=60, **options
    )
