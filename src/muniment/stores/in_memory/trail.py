"""The audit records of an in-process store, on their way to its log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from muniment.errors import AuditError
from muniment.governance.audit import AuditLog
from muniment.governance.audit_record import AuditEntry
from muniment.governance.audit_verification import VerifyResult, verify_for_store
from muniment.stores.driven import in_thread

_log = logging.getLogger("muniment.audit")


class Trail:
    """Appends what changes recorded, in order and off the event loop.

    Entries that the log does not take wait here, with a WARNING, and go with the next ones.
    """

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._waiting: list[AuditEntry] = []

    async def require_log(self) -> None:
        """AuditError where the log is damaged or missing."""
        await in_thread(self._log.require_sound)

    def add(self, entries: Sequence[AuditEntry]) -> None:
        """Take the entries of a change that is made."""
        self._waiting += entries

    async def settle(self) -> None:
        """Append what waits."""
        if self._waiting:
            await in_thread(self._append)

    async def verify(self, receipt: str | None) -> VerifyResult:
        """The log as this store knows it, after appending what waits."""
        await self.settle()
        path, seen, waiting = self._log.path, self._log.vouched.tail, len(self._waiting)
        return await in_thread(
            lambda: verify_for_store(path, seen, waiting=waiting, receipt=receipt)
        )

    def _append(self) -> None:
        with self._lock:
            entries = list(self._waiting)
            try:
                with self._log.held() as log:
                    log.append(entries, since=self._log.vouched)
            except AuditError as error:
                ids = ", ".join(entry.id for entry in entries[:10])
                _log.warning("audit records wait in the outbox (%s): %s", error, ids)
            else:
                del self._waiting[: len(entries)]
