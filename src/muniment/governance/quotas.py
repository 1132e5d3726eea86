"""Quotas: how much of a store one tenant may fill."""

from __future__ import annotations

from dataclasses import dataclass

from muniment.domain import checks
from muniment.errors import MemoryConfigurationError, QuotaExceededError

LARGEST_QUOTA = 1 << 53


@dataclass(frozen=True, slots=True)
class Totals:
    """What a tenant has stored: memories, and the tokens of their texts."""

    entries: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits a tenant, None for no limit; MemoryConfigurationError unless from 0 to 2^53."""

    entries: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("entries", "tokens"):
            value = getattr(self, name)
            try:
                if value is not None:
                    checks.whole(f"quota_{name}", value, low=0, high=LARGEST_QUOTA)
            except ValueError as error:
                raise MemoryConfigurationError(str(error)) from None

    @property
    def limited(self) -> bool:
        """There is a limit to hold."""
        return self.entries is not None or self.tokens is not None

    def check(self, before: Totals, after: Totals) -> None:
        """QuotaExceededError where a write grew a figure beyond its limit.

        A write that does not grow passes over a lowered quota too. The error states no counts:
        a tenant's readers are not told what others stored.
        """
        for name in ("entries", "tokens"):
            limit, now = getattr(self, name), getattr(after, name)
            if limit is not None and now > limit and now > getattr(before, name):
                raise QuotaExceededError(f"the tenant's quota of {name} is full; nothing changed")
