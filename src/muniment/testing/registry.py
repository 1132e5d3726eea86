"""Specs and the capabilities that they belong to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muniment.testing.kit import Kit


class Capability(StrEnum):
    """What a store may offer."""

    MEMORIES = "memories"
    FACTS = "facts"
    RECALL = "recall"
    CONVERSATIONS = "conversations"
    WORKING = "working"
    SERVICE = "service"
    EXCHANGES = "exchanges"
    REALMS = "realms"
    ENTRIES = "entries"
    DERIVATION = "derivation"
    ERASURE = "erasure"
    QUOTAS = "quotas"
    USAGE = "usage"
    CHAINS = "chains"
    TRANSFER = "transfer"
    TRANSFER_TALKS = "transfer_talks"
    DURABILITY = "durability"


@dataclass(frozen=True, slots=True)
class Spec:
    """One outcome that must hold; `run` raises AssertionError where it does not."""

    capability: Capability
    name: str
    run: Callable[[Kit], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.capability}:{self.name}"


_SPECS: list[Spec] = []


def spec(
    capability: Capability,
) -> Callable[[Callable[[Kit], Awaitable[None]]], Callable[[Kit], Awaitable[None]]]:
    """Register a spec; its function's name says the outcome."""

    def registered(run: Callable[[Kit], Awaitable[None]]) -> Callable[[Kit], Awaitable[None]]:
        _SPECS.append(Spec(capability, run.__name__, run))
        return run

    return registered


def specs(capabilities: Iterable[Capability] = tuple(Capability)) -> tuple[Spec, ...]:
    """Every spec of these capabilities, in the order in which they are written."""
    wanted = frozenset(capabilities)
    for capability in Capability:
        import_module(f"muniment.testing.specs.{capability}")
    return tuple(each for each in _SPECS if each.capability in wanted)
