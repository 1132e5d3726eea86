"""The in-process store: short, and what the others are compared with."""

from muniment.stores.in_memory.store import InMemoryStore

__all__ = ["InMemoryStore"]
