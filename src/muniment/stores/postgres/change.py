"""What a job that writes memories or conversations is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from muniment.governance.audit_record import AuditEntry
from muniment.governance.events import Records
from muniment.stores.limits import Limits
from muniment.stores.postgres.session import Session

Answer = TypeVar("Answer")


class Change(Records):
    """One write inside its transaction: what it does through `db` and what it records go together.

    `now` is the instant of the change. An AuditError from `record` undoes the job.
    """

    __slots__ = ("db", "limits")

    def __init__(
        self,
        db: Session,
        now: datetime,
        keep: Callable[[AuditEntry], None] | None,
        limits: Limits,
    ) -> None:
        super().__init__(keep, now)
        self.db = db
        self.limits = limits


ChangeJob = Callable[[Change], Awaitable[Answer]]
