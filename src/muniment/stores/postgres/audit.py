"""The audit log as a table: one chain a tenant, written in the transaction of the change."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from muniment.errors import AuditError
from muniment.governance.audit import VerifyResult
from muniment.governance.audit_record import (
    GENESIS,
    RECORD_ID,
    AuditEntry,
    AuditRecord,
    BrokenRecord,
    read_record,
)
from muniment.governance.events import REALM_ERASED
from muniment.governance.receipts import ErasureReceipt, parse_receipt
from muniment.stores.postgres.session import Job, Row, Session

Reader = Callable[[str, Job[list[Row]]], Awaitable[list[Row]]]

_PAGE = 500
_log = logging.getLogger(__name__)


async def append(db: Session, entries: Sequence[AuditEntry], *, may_wait: bool) -> None:
    """Add the entries to the tenant's chain, whose end nobody else moves until the commit.

    AuditError where its last record is not sound; a change that `may_wait` goes on, with a
    warning, and its records follow what is there.
    """
    await db.all("lock_audit", {})
    records, last_hash = await _end(db, may_wait=may_wait)
    added: list[AuditRecord] = []
    for entry in entries:
        added.append(entry.following(records, last_hash))
        records, last_hash = added[-1].sequence, added[-1].hash
    values = {
        "sequences": [record.sequence for record in added],
        "record_ids": [entry.id for entry in entries],
        "hashes": [record.hash for record in added],
        "lines": [record.line().decode("ascii") for record in added],
    }
    await db.run("add_audit", values)


async def _end(db: Session, *, may_wait: bool) -> tuple[int, str]:
    row = await db.one("last_audit", {})
    if row is None:
        return 0, GENESIS
    sequence, held_hash, line = row
    try:
        previous = json.loads(line)["previous_hash"]
        record = read_record(line.encode(), sequence=sequence, previous_hash=previous)
        if record.hash != held_hash:
            raise BrokenRecord("the hash beside the record is another")
    except (BrokenRecord, ValueError, KeyError, TypeError):
        if not may_wait:
            raise AuditError("the audit log is damaged: its last record is not sound") from None
        _log.warning("the audit log is damaged; an erasure goes on", extra={"records": sequence})
    return sequence, held_hash


@dataclass(slots=True)
class _Chain:
    """How far one tenant's chain was followed."""

    records: int = 0
    last_hash: str = GENESIS
    error: str | None = None

    def follow(self, sequence: int, line: str) -> AuditRecord | None:
        """The next record; None, and `error` said, where it does not follow."""
        number = self.records + 1
        try:
            if sequence != number:
                raise BrokenRecord("a record is missing")
            record = read_record(line.encode(), sequence=number, previous_hash=self.last_hash)
        except (BrokenRecord, ValueError) as broken:
            self.error = f"record {number}: {broken}"
            return None
        self.records, self.last_hash = number, record.hash
        return record


async def verify(read: Reader, receipt: str | None) -> VerifyResult:
    """Follow every chain whole; never raises for their state.

    `records` are those of all chains together. `last_hash` is the chain's own where there is
    one, else SHA-256 over the chains' last hashes, sorted. With an erasure's `receipt`, a chain
    must hold the record of that erasure; ValueError for a malformed one.
    """
    wanted = None if receipt is None else parse_receipt(receipt)
    chains: list[_Chain] = []
    found, tenant = wanted is None, ""
    while following := await _next_tenant(read, tenant):
        tenant = following
        chain, holds = await _followed(read, tenant, wanted)
        chains.append(chain)
        found = found or holds
    error = next((chain.error for chain in chains if chain.error), None)
    if error is None and not found:
        error = "no record holds the receipt"
    records = sum(chain.records for chain in chains)
    return VerifyResult(error is None, records, _together(chains), error)


async def _next_tenant(read: Reader, after: str) -> str | None:
    rows = await read("", lambda db: db.all("next_audited", {"after": after}))
    found: str | None = rows[0][0]
    return found


async def _followed(
    read: Reader, tenant: str, wanted: ErasureReceipt | None
) -> tuple[_Chain, bool]:
    chain, holds = _Chain(), False
    while True:
        rows = await read(tenant, partial(_lines, after=chain.records))
        for sequence, line in rows:
            record = chain.follow(sequence, line)
            if record is None:
                return chain, holds
            holds = holds or _is_of(record, wanted)
        if not rows:
            return chain, holds


async def _lines(db: Session, after: int) -> list[Row]:
    return await db.all("audit_lines", {"after": after, "limit": _PAGE})


def _is_of(record: AuditRecord, wanted: ErasureReceipt | None) -> bool:
    held = (record.event, record.data.get(RECORD_ID), record.data.get("digest"))
    return wanted is not None and held == (REALM_ERASED, wanted.record_id, wanted.digest)


def _together(chains: Sequence[_Chain]) -> str:
    if len(chains) <= 1:
        return chains[0].last_hash if chains else GENESIS
    hashes = sorted(chain.last_hash for chain in chains)
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()
