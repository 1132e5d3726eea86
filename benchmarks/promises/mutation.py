"""A promise, and how to break it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """A promise in words; `before` stands exactly once in `file` (below ``src/muniment``)."""

    promise: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


def unit(name: str, *tests: str) -> tuple[str, ...]:
    """Tests of one file by the sentences that they are."""
    return tuple(f"tests/unit/test_{name}.py::test_{test}" for test in tests)


def kit(store: str, *specs: str) -> tuple[str, ...]:
    """Specs of the conformance kit on one store."""
    where = "tests/contract/test_stores.py::test_a_store_conforms"
    return tuple(f"{where}[{store}-{spec}]" for spec in specs)
