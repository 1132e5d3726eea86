"""Usage: what a realm has stored, and what its tenant's searches served on one day."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

_PERIOD = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Usage:
    """`entries` and `stored_tokens` are the realm's now; the rest is its tenant's on `period`.

    `period` is one UTC day, YYYY-MM-DD: how many `searches` there were, and how many entries
    and tokens they gave out.
    """

    entries: int
    stored_tokens: int
    period: str
    searches: int = 0
    served_entries: int = 0
    served_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Served:
    """What searches gave out."""

    searches: int = 0
    entries: int = 0
    tokens: int = 0

    def __add__(self, other: Served) -> Served:
        return Served(
            self.searches + other.searches,
            self.entries + other.entries,
            self.tokens + other.tokens,
        )


class ServedCounts:
    """Counts a tenant and UTC day, gathered in this process so that no search waits for a write.

    Safe for several threads.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: defaultdict[tuple[str, str], Served] = defaultdict(Served)

    def note(self, tenant: str, entries: int, tokens: int) -> None:
        """One search of today gave out so much."""
        self.put_back({(tenant, day_of(self._clock())): Served(1, entries, tokens)})

    @property
    def any(self) -> bool:
        """There is something gathered."""
        return bool(self._counts)

    def take(self) -> dict[tuple[str, str], Served]:
        """What was gathered since it was last taken."""
        with self._lock:
            taken = dict(self._counts)
            self._counts.clear()
        return taken

    def put_back(self, counts: dict[tuple[str, str], Served]) -> None:
        """Add counts, those that could not be stored among them."""
        with self._lock:
            for key, served in counts.items():
                self._counts[key] += served

    def of(self, tenant: str, day: str) -> Served:
        """What is gathered for one tenant and day."""
        with self._lock:
            return self._counts.get((tenant, day), Served())

    def forget(self, tenant: str) -> None:
        """Drop a tenant's counts."""
        with self._lock:
            for key in [key for key in self._counts if key[0] == tenant]:
                del self._counts[key]


def day_of(instant: datetime) -> str:
    """The UTC day of an instant, YYYY-MM-DD."""
    return instant.astimezone(UTC).date().isoformat()


def checked_period(period: str | None, now: datetime) -> str:
    """`period`, today where it is None; ValueError unless a day as YYYY-MM-DD."""
    if period is None:
        return day_of(now)
    if isinstance(period, str) and _PERIOD.fullmatch(period):
        try:
            return date.fromisoformat(period).isoformat()
        except ValueError:
            pass  # such a month or day is not in the calendar
    raise ValueError("period: must be a UTC day, YYYY-MM-DD")
