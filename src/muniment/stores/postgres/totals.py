"""What each tenant has stored and was served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from muniment.governance.quotas import Totals
from muniment.governance.usage import Served
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.session import Session


@asynccontextmanager
async def held_quota(change: Change) -> AsyncIterator[None]:
    """Writes of the tenant that must keep to its quotas; QuotaExceededError undoes the job."""
    quotas = change.limits.quotas
    if not quotas.limited:
        yield
        return
    before = await _totals(change.db)
    yield
    quotas.check(before, await _totals(change.db))


async def _totals(db: Session) -> Totals:
    row = await db.one("tenant_totals", {})
    return Totals() if row is None else Totals(*row)


async def add_served(db: Session, days: Mapping[str, Served]) -> None:
    """Add what the tenant's searches gave out, by UTC day."""
    for day, served in sorted(days.items()):
        counts = {
            "searches": served.searches,
            "entries": served.entries,
            "tokens": served.tokens,
        }
        await db.run("add_served", {"day": day, **counts})


async def served_on(db: Session, day: str) -> Served:
    """What the tenant's searches gave out on one UTC day, as far as it is stored."""
    row = await db.one("served", {"day": day})
    return Served() if row is None else Served(*row)
