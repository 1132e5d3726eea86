"""The audit log: append-only JSON Lines in which every record is chained to the one before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope
from muniment.errors import AuditError
from muniment.governance import audit_file
from muniment.governance.audit_chain import BrokenChain, Tail, follow, still_ends_with
from muniment.governance.audit_record import (
    GENESIS,
    AuditRecord,
    checked_data,
    checked_event,
    realm_text,
)

__all__ = ["GENESIS", "AuditLog", "AuditRecord", "VerifyResult", "verify_audit_log"]


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


@dataclass(frozen=True, slots=True)
class _Known:
    """The tail that this object last vouched for, and the file's stamp at that moment."""

    tail: Tail
    stamp: audit_file.Stamp


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
        self._known: _Known | None = None
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
            line = record.line() + b"\n"
            audit_file.append_bytes(descriptor, line, at=tail.end, fsync=self._fsync)
            self._known = _Known(tail.after(record, len(line)), audit_file.stamp(descriptor))
        return record

    def verify(
        self, *, expected_count: int | None = None, expected_last_hash: str | None = None
    ) -> VerifyResult:
        """`verify_audit_log` of this log."""
        return verify_audit_log(
            self._path, expected_count=expected_count, expected_last_hash=expected_last_hash
        )

    def _sound_tail(self, descriptor: int) -> Tail:
        """The tail of the locked log; read only where the file changed since we vouched for it."""
        known, stamp = self._known, audit_file.stamp(descriptor)
        if known is not None and known.stamp == stamp:
            return known.tail
        tail = self._reread(descriptor, stamp)
        self._known = _Known(tail, stamp)
        return tail

    def _reread(self, descriptor: int, stamp: audit_file.Stamp) -> Tail:
        known = self._known
        with open(descriptor, "rb", closefd=False) as stream:
            if known is None:
                return follow(stream, Tail(), until=stamp.size)
            grew = known.stamp.grew_into(stamp) and still_ends_with(stream, known.tail)
            start = known.tail if grew else Tail()
            return follow(stream, start, until=stamp.size, anchor=known.tail)

    def _time(self) -> str:
        now = self._clock()
        if now.utcoffset() is None:
            raise AuditError("clock: must give aware datetimes")
        return now.astimezone(UTC).isoformat(timespec="microseconds")


def verify_audit_log(
    path: str | os.PathLike[str],
    *,
    expected_count: int | None = None,
    expected_last_hash: str | None = None,
) -> VerifyResult:
    """Follow the whole chain of the log at `path` as of this call; never raises for its state.

    Edited, inserted, removed and reordered records are found by themselves. Records cut off at
    the end, or a chain rewritten up to its end, are found by an anchor kept elsewhere: the
    number of records and the last hash, which must then be exactly these. Writers go on
    meanwhile, and memory use does not grow with the log.
    """
    result = _verify_chain(Path(path))
    if not result.ok:
        return result
    if expected_count is not None and result.records != expected_count:
        reason = f"{result.records} records where {expected_count} were expected"
        return replace(result, ok=False, error=reason)
    if expected_last_hash is not None and result.last_hash != expected_last_hash:
        return replace(result, ok=False, error="the last hash is not the expected one")
    return result


def _verify_chain(path: Path) -> VerifyResult:
    try:
        with audit_file.opened(path, writing=False) as descriptor:
            size = audit_file.stamp(descriptor).size
            audit_file.unlock(descriptor)  # what is written stays: writers need not wait
            with open(descriptor, "rb", closefd=False) as stream:
                tail = follow(stream, Tail(), until=size)
    except BrokenChain as broken:
        return _broken(broken.sound, str(broken), broken.line)
    except OSError as error:
        return _broken(Tail(), _unreadable(error))
    return VerifyResult(True, tail.records, tail.last_hash)


def _broken(sound: Tail, error: str, line: int | None = None) -> VerifyResult:
    return VerifyResult(False, sound.records, sound.last_hash, error, line)


@contextmanager
def _as_audit_error() -> Iterator[None]:
    try:
        yield
    except BrokenChain as broken:
        raise AuditError(f"the audit log is damaged: {broken}") from None
    except OSError as error:
        raise AuditError(f"the audit log cannot be written: {_unreadable(error)}") from error


def _unreadable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file is missing"
    return error.strerror or str(error)


def _now() -> datetime:
    return datetime.now(UTC)
