"""What a log holds, and whether it is what was written."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from muniment.governance import audit_file
from muniment.governance.audit_chain import BrokenChain, Tail, follow
from muniment.governance.audit_record import RECORD_ID, AuditRecord
from muniment.governance.events import REALM_ERASED
from muniment.governance.receipts import ErasureReceipt, parse_receipt


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What a log holds: `records` sound ones from the start, the last with `last_hash`.

    When not `ok`, `error` says why, without quoting the log, and `line` (from 1) where, unless
    no single line is to blame.
    """

    ok: bool
    records: int
    last_hash: str
    error: str | None = None
    line: int | None = None

    def failed(self, reason: str) -> VerifyResult:
        """This result, not `ok` for `reason`; one that already is not stays as it is."""
        return replace(self, ok=False, error=reason) if self.ok else self


def verify_audit_log(
    path: str | os.PathLike[str],
    *,
    expected_count: int | None = None,
    expected_last_hash: str | None = None,
    receipt: str | None = None,
) -> VerifyResult:
    """Follow the whole chain of the log at `path` as of this call; never raises for its state.

    Edited, inserted, removed and reordered records are found by themselves. Records cut off at
    the end, or a chain rewritten up to its end, are found by an anchor kept elsewhere: the
    number of records and the last hash, which must then be exactly these. With an erasure's
    `receipt`, the log must hold the record of that erasure; ValueError for a malformed one.
    Writers go on meanwhile, and memory use does not grow with the log.
    """
    wanted = None if receipt is None else _Wanted(parse_receipt(receipt))
    result = verify_chain(Path(path), visit=wanted or _pass)
    if expected_count is not None and result.records != expected_count:
        result = result.failed(f"{result.records} records where {expected_count} were expected")
    if expected_last_hash is not None and result.last_hash != expected_last_hash:
        result = result.failed("the last hash is not the expected one")
    if wanted is not None and wanted.found is None:
        result = result.failed("no record holds the receipt")
    return result


def verify_for_store(
    path: Path, anchor: Tail, *, waiting: int, receipt: str | None
) -> VerifyResult:
    """`verify_audit_log` as a store asks it: the log must continue from the store's `anchor`, and
    none of its records may be `waiting` to be appended."""
    wanted = None if receipt is None else _Wanted(parse_receipt(receipt))
    result = verify_chain(path, anchor=anchor, visit=wanted or _pass)
    if waiting:
        result = result.failed(f"{waiting} records are not in the log yet")
    if wanted is not None and wanted.found is None:
        result = result.failed("no record holds the receipt")
    return result


def find_receipt(path: str | os.PathLike[str], receipt: str) -> AuditRecord | None:
    """The record of the erasure that gave `receipt`, its counts in `data`; None where a sound
    log holds none, or the log is not sound. ValueError for a malformed receipt."""
    wanted = _Wanted(parse_receipt(receipt))
    return wanted.found if verify_chain(Path(path), visit=wanted).ok else None


def verify_chain(
    path: Path, *, anchor: Tail | None = None, visit: Callable[[AuditRecord], None]
) -> VerifyResult:
    """The chain alone, which must continue from `anchor`; `visit` is shown each record."""
    try:
        with audit_file.opened(path, writing=False) as descriptor:
            size = audit_file.stamp(descriptor).size
            audit_file.unlock(descriptor)  # what is written stays: writers need not wait
            with open(descriptor, "rb", closefd=False) as stream:
                tail = follow(stream, Tail(), until=size, anchor=anchor, visit=visit)
    except BrokenChain as broken:
        return _broken(broken.sound, str(broken), broken.line)
    except OSError as error:
        return _broken(Tail(), unreadable(error))
    return VerifyResult(True, tail.records, tail.last_hash)


def unreadable(error: OSError) -> str:
    """What keeps a log from being read or written."""
    if isinstance(error, FileNotFoundError):
        return "the file is missing"
    return error.strerror or str(error)


class _Wanted:
    """Looks for the record that a receipt names."""

    def __init__(self, receipt: ErasureReceipt) -> None:
        self._receipt = receipt
        self.found: AuditRecord | None = None

    def __call__(self, record: AuditRecord) -> None:
        held = (record.event, record.data.get(RECORD_ID), record.data.get("digest"))
        if held == (REALM_ERASED, self._receipt.record_id, self._receipt.digest):
            self.found = record


def _pass(_: AuditRecord) -> None:
    """Nothing is looked for."""


def _broken(sound: Tail, error: str, line: int | None = None) -> VerifyResult:
    return VerifyResult(False, sound.records, sound.last_hash, error, line)
