"""The audit log: append-only JSON Lines in which every record is chained to the one before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope
from muniment.errors import AuditError
from muniment.governance import audit_file
from muniment.governance.audit_anchor import Anchor
from muniment.governance.audit_chain import BrokenChain, Tail, follow, ids_among
from muniment.governance.audit_record import (
    GENESIS,
    AuditEntry,
    AuditRecord,
    checked_data,
    checked_event,
    realm_text,
)
from muniment.governance.audit_verification import VerifyResult, unreadable, verify_audit_log

BEGINNING = Anchor()

__all__ = ["GENESIS", "AuditLog", "AuditRecord", "VerifyResult", "verify_audit_log"]


class AuditLog:
    """An audit log at `path`, created empty with mode 0600 when missing.

    Safe for many threads and processes, on POSIX and a file system with working locks. Records
    should carry ids and counts only. With `fsync`, a record is on the disk when `append`
    returns. `clock` gives aware datetimes. AuditError when the file cannot be created.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = True,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._path = Path(path)
        self._fsync = fsync
        self._clock = clock or _now
        self._known: Anchor | None = None
        self._fault: tuple[audit_file.Stamp, BrokenChain] | None = None
        with _as_audit_error():
            audit_file.create(self._path)

    @property
    def path(self) -> Path:
        """Where the log is."""
        return self._path

    def append(
        self,
        event: str,
        data: Mapping[str, Any] | None = None,
        scope: Scope | MemoryOwner | RealmKey | None = None,
    ) -> AuditRecord:
        """Write one record and return it: its sequence and hash are an anchor for `verify`.

        The first append of an object verifies the whole log, later ones only what others have
        appended since. AuditError, with nothing written, when the log is damaged, missing, or
        no longer continues what this object saw; when the event or the data is not fit for a
        record of at most 64 KiB; or when the file cannot be written. Secrets in `data`
        (pydantic's `SecretStr` and kin) are written redacted.
        """
        event, plain, realm = checked_event(event), checked_data(data), realm_text(scope)
        with _as_audit_error(), audit_file.opened(self._path, writing=True) as descriptor:
            tail = self._sound_tail(descriptor)
            record = AuditRecord(
                tail.records + 1, self._time(), event, realm, plain, tail.last_hash
            ).sealed()
            self._write(descriptor, tail, [record])
        return record

    def require_sound(self, anchor: Anchor = BEGINNING) -> None:
        """AuditError where a record could not be appended: the log is damaged or missing, it
        does not continue from `anchor`, or it may not be written.

        Costs one look at the file's stamp while nobody else writes.
        """
        with _as_audit_error():
            known = self._known
            if known is not None and anchor is BEGINNING and known.stamp == _stamp(self._path):
                return
            with audit_file.opened(self._path, writing=True) as descriptor:
                self._continuing(descriptor, anchor)

    def accept(self) -> Anchor:
        """Vouch for the log as it is now, whatever was seen of it before; made anew where missing.

        For an administrator who has put a damaged log away. AuditError where the chain is not
        sound in itself.
        """
        with _as_audit_error():
            audit_file.create(self._path)
            with audit_file.opened(self._path, writing=True) as descriptor:
                self._known = self._fault = None
                self._sound_tail(descriptor)
        return self.vouched

    @property
    def vouched(self) -> Anchor:
        """The tail that this object last found sound."""
        return self._known or BEGINNING

    @contextmanager
    def held(self) -> Iterator[HeldLog]:
        """The log, locked against every other thread and process until the block is left.

        AuditError like `append`'s.
        """
        with _as_audit_error(), audit_file.opened(self._path, writing=True) as descriptor:
            yield HeldLog(self, descriptor)

    def verify(
        self,
        *,
        expected_count: int | None = None,
        expected_last_hash: str | None = None,
        receipt: str | None = None,
    ) -> VerifyResult:
        """`verify_audit_log` of this log."""
        return verify_audit_log(
            self._path,
            expected_count=expected_count,
            expected_last_hash=expected_last_hash,
            receipt=receipt,
        )

    def _continuing(self, descriptor: int, anchor: Anchor) -> Tail:
        """The tail of the locked log, which must continue from `anchor`."""
        tail = self._sound_tail(descriptor, anchor)
        if anchor.tail.records:
            with open(descriptor, "rb", closefd=False) as stream:
                anchor.require_continued(stream, tail)
        return tail

    def _sound_tail(self, descriptor: int, hint: Anchor = BEGINNING) -> Tail:
        """The tail of the locked log; read only where the file changed since we vouched for it.

        An object that knows nothing yet believes `hint`, if the file only grew since then.
        """
        known, stamp = self._known, audit_file.stamp(descriptor)
        if known is not None and known.stamp == stamp:
            return known.tail
        if self._fault is not None and self._fault[0] == stamp:
            raise self._fault[1].with_traceback(None)
        try:
            tail = self._reread(descriptor, stamp, hint)
        except BrokenChain as broken:
            self._fault = stamp, broken
            raise
        self._known = Anchor(tail, stamp)
        return tail

    def _reread(self, descriptor: int, stamp: audit_file.Stamp, hint: Anchor) -> Tail:
        known = self._known
        with open(descriptor, "rb", closefd=False) as stream:
            vouched = hint if known is None else known
            start = vouched.tail if vouched.is_prefix(stream, stamp) else Tail()
            seen = None if known is None else known.tail
            return follow(stream, start, until=stamp.size, anchor=seen)

    def _write(
        self,
        descriptor: int,
        tail: Tail,
        records: Sequence[AuditRecord],
        torn: BrokenChain | None = None,
    ) -> Anchor:
        """Append records that follow `tail`, in one write, and vouch for the new tail.

        A `torn` line is completed where it is the beginning of just these records.
        """
        lines = [record.line() + b"\n" for record in records]
        content, at = b"".join(lines), tail.end
        if torn is not None:
            begun = audit_file.read_from(descriptor, at)
            if not content.startswith(begun):
                raise torn
            content, at = content[len(begun) :], at + len(begun)
        audit_file.append_bytes(descriptor, content, at=at, fsync=self._fsync)
        for record, line in zip(records, lines, strict=True):
            tail = tail.after(record, len(line))
        self._known = Anchor(tail, audit_file.stamp(descriptor))
        return self._known

    def _time(self) -> str:
        now = self._clock()
        if now.utcoffset() is None:
            raise AuditError("clock: must give aware datetimes")
        return now.astimezone(UTC).isoformat(timespec="microseconds")


class HeldLog:
    """A log under its lock. BrokenChain and OSError leave it as AuditError."""

    def __init__(self, log: AuditLog, descriptor: int) -> None:
        self._log = log
        self._descriptor = descriptor

    def append(self, entries: Sequence[AuditEntry], *, since: Anchor) -> Anchor:
        """Append in one write those `entries` that are not in the log already; the new anchor.

        `since` is an anchor from before any of them can have been appended. Where a killed
        process left a torn line and it is the beginning of what is to be written, the line is
        completed.
        """
        torn: BrokenChain | None = None
        try:
            tail = self._log._continuing(self._descriptor, since)
        except BrokenChain as broken:
            if not broken.torn:
                raise
            tail, torn = broken.sound, broken
            self._require_all_of(tail, since, self._log.vouched)
        records = list(_chained(tail, self._missing(entries, since.tail, tail)))
        return self._log._write(self._descriptor, tail, records, torn)

    def _require_all_of(self, sound: Tail, *anchors: Anchor) -> None:
        """BrokenChain where the torn line is what is left of a record that was there."""
        with open(self._descriptor, "rb", closefd=False) as stream:
            for anchor in anchors:
                anchor.require_continued(stream, sound)

    def _missing(
        self, entries: Sequence[AuditEntry], since: Tail, tail: Tail
    ) -> Sequence[AuditEntry]:
        """The entries that no record between `since` and `tail` is of."""
        if since.end >= tail.end:
            return entries
        with open(self._descriptor, "rb", closefd=False) as stream:
            wanted = {entry.id for entry in entries}
            held = ids_among(stream, since, until=tail.end, wanted=wanted)
        return [entry for entry in entries if entry.id not in held]


def _chained(tail: Tail, entries: Sequence[AuditEntry]) -> Iterator[AuditRecord]:
    records, last_hash = tail.records, tail.last_hash
    for entry in entries:
        record = entry.following(records, last_hash)
        records, last_hash = record.sequence, record.hash
        yield record


def audit_log(given: AuditLog | str | os.PathLike[str] | None) -> AuditLog | None:
    """A log as a constructor is given it: itself, or by its path."""
    return given if given is None or isinstance(given, AuditLog) else AuditLog(given)


@contextmanager
def _as_audit_error() -> Iterator[None]:
    try:
        yield
    except BrokenChain as broken:
        raise AuditError(f"the audit log is damaged: {broken}") from None
    except FileNotFoundError as error:
        raise AuditError("the audit log cannot be written: it or its folder is missing") from error
    except OSError as error:
        raise AuditError(f"the audit log cannot be written: {unreadable(error)}") from error


def _stamp(path: Path) -> audit_file.Stamp:
    return audit_file.stamp_of(os.stat(path))


def _now() -> datetime:
    return datetime.now(UTC)
