"""What each tenant has stored and was served: the rows that triggers and searches keep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import apsw

from muniment.governance.quotas import Totals
from muniment.governance.usage import Served, ServedCounts
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.statements import SQL

_UNLIMITED = nullcontext()


def held_quota(change: Change, tenant: str) -> AbstractContextManager[None]:
    """Writes of one tenant that must keep to its quotas; QuotaExceededError undoes the job."""
    return _compared(change, tenant) if change.limits.quotas.limited else _UNLIMITED


@contextmanager
def _compared(change: Change, tenant: str) -> Iterator[None]:
    before = _totals(change.db, tenant)
    yield
    change.limits.quotas.check(before, _totals(change.db, tenant))


def _totals(db: apsw.Connection, tenant: str) -> Totals:
    row = db.execute(SQL["tenant_totals"], (tenant,)).fetchone()
    return Totals() if row is None else Totals(*row)


def store_served(db: apsw.Connection, counts: ServedCounts) -> None:
    """Add what this process gathered to the rows; it stays gathered where that fails."""
    taken = counts.take()
    try:
        for (tenant, day), served in taken.items():
            values = (tenant, day, served.searches, served.entries, served.tokens)
            db.execute(SQL["add_served"], values)
    except BaseException:
        counts.put_back(taken)
        raise


def served_on(db: apsw.Connection, tenant: str, day: str) -> Served:
    """What a tenant's searches gave out on one UTC day, as far as it is stored."""
    row = db.execute(SQL["served"], (tenant, day)).fetchone()
    return Served() if row is None else Served(*row)
