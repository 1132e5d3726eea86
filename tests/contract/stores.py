"""How each store under test is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from muniment.stores.in_memory import InMemoryStore
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.testing.kit import StoreMaker

MAKERS: dict[str, Callable[[Path], StoreMaker]] = {
    "in_memory": lambda _: (
        lambda clock, embedder, **options: InMemoryStore(clock=clock, embedder=embedder, **options)
    ),
    "sqlite": lambda folder: (
        lambda clock, embedder, **options: AsyncSQLiteStore(
            folder / "memory.db", clock=clock, embedder=embedder, **options
        )
    ),
}
DURABLE = ("sqlite",)
