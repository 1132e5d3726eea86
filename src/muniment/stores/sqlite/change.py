"""What a job that writes memories or conversations is given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

import apsw

from muniment.governance.audit_record import AuditEntry
from muniment.governance.events import Records
from muniment.stores.limits import Limits

Answer = TypeVar("Answer")


class Change(Records):
    """One write inside its savepoint: what it does through `db` and what it records go together.

    `now` is the instant of the change. An AuditError from `record` undoes the job.
    """

    __slots__ = ("db", "limits")

    def __init__(
        self,
        db: apsw.Connection,
        now: datetime,
        put: Callable[[apsw.Connection, AuditEntry], None] | None,
        limits: Limits,
    ) -> None:
        super().__init__(None if put is None else partial(put, db), now)
        self.db = db
        self.limits = limits


ChangeJob = Callable[[Change], Answer]
