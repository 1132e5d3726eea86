"""A damaged, deleted or unwritable audit log is found, named, and never appended to."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import AuditError
from muniment.governance import audit_file
from muniment.governance.audit import AuditLog, verify_audit_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def log(path: Path) -> AuditLog:
    log = AuditLog(path, fsync=False)
    for number in range(3):
        log.append("memory.saved", {"id": f"m{number}"})
    return log


def refuses(log: AuditLog, path: Path, reason: str) -> None:
    before = path.read_bytes()
    with pytest.raises(AuditError, match=reason):
        log.append("memory.saved")
    assert path.read_bytes() == before


def test_a_torn_last_line_is_found_named_and_not_appended_to(log: AuditLog, path: Path):
    path.write_bytes(path.read_bytes()[:-20])
    result = verify_audit_log(path)
    assert (result.records, result.line) == (2, 3)
    assert result.error == "line 3: the last line is torn"
    refuses(AuditLog(path, fsync=False), path, "line 3: the last line is torn")
    refuses(log, path, "line 3: the last line is torn")


def test_a_last_line_without_its_line_feed_is_torn(log: AuditLog, path: Path):
    path.write_bytes(path.read_bytes()[:-1])
    assert verify_audit_log(path).error == "line 3: the last line is torn"
    refuses(AuditLog(path, fsync=False), path, "torn")


def test_a_log_whose_torn_line_was_taken_off_is_appended_to_again(log: AuditLog, path: Path):
    sound = path.read_bytes()
    path.write_bytes(sound + b'{"data":')
    refuses(log, path, "line 4: the last line is torn")
    path.write_bytes(sound)
    assert log.append("repaired").sequence == 4
    assert log.verify(expected_count=4).ok


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 60_000,
        b'{"data":' * 8_000,
        b'{"data":{"a":' + b"[" * 60_000,
        b'"' + b'\\"' * 30_000 + b"[" * 60,
        b"1" * 60_000,
        b"\xff" * 100,
        b"null",
        b"[]",
        b"",
        b"NaN",
    ],
    ids=lambda line: repr(line[:12]),
)
def test_a_line_that_is_no_record_is_found_whatever_it_holds(
    log: AuditLog, path: Path, line: bytes
):
    path.write_bytes(path.read_bytes() + line + b"\n")
    result = verify_audit_log(path)
    assert (result.ok, result.records, result.line) == (False, 3, 4)
    refuses(log, path, "line 4")
    refuses(AuditLog(path, fsync=False), path, "line 4")


def test_an_endless_line_is_found_without_being_read_whole(log: AuditLog, path: Path):
    size = path.stat().st_size
    os.truncate(path, size + (1 << 33))  # 8 GiB of NUL bytes, in a sparse file
    result = verify_audit_log(path)
    assert (result.records, result.error) == (3, "line 4: it is longer than 65536 bytes")


def test_errors_quote_nothing_of_the_log(log: AuditLog, path: Path):
    path.write_bytes(path.read_bytes() + b'{"secret-word": 1}\n')
    assert "secret" not in str(verify_audit_log(path))
    with pytest.raises(AuditError) as refusal:
        log.append("e")
    assert "secret" not in str(refusal.value)


def test_an_edit_under_a_running_log_is_found_at_the_next_append(log: AuditLog, path: Path):
    path.write_bytes(path.read_bytes().replace(b'"id":"m0"', b'"id":"m9"'))
    refuses(log, path, "line 1: the hash does not match")


def test_a_record_cut_off_under_a_running_log_is_found_at_the_next_append(
    log: AuditLog, path: Path
):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    refuses(log, path, "cut off")
    refuses(log, path, "cut off")


def test_records_exchanged_under_a_running_log_are_found(log: AuditLog, path: Path):
    path.unlink()
    forged = AuditLog(path, fsync=False)
    for _ in range(5):
        forged.append("forged")
    assert verify_audit_log(path).ok
    refuses(log, path, "line 3: records that were there are replaced")


def test_a_log_moved_away_and_copied_back_is_continued(log: AuditLog, path: Path):
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    assert log.append("e").sequence == 4
    assert log.verify(expected_count=4).ok


def test_a_deleted_log_is_named_and_not_silently_begun_again(log: AuditLog, path: Path):
    path.unlink()
    with pytest.raises(AuditError, match="missing"):
        log.append("e")
    result = log.verify()
    assert (result.ok, result.records, result.error) == (False, 0, "the file is missing")
    assert not path.exists()


def test_a_log_that_is_not_a_file_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        assert not verify_audit_log(tmp_path / name).ok
        with pytest.raises(AuditError):
            AuditLog(tmp_path / name).append("e")


def test_a_log_in_a_missing_directory_is_refused_at_once(tmp_path: Path):
    with pytest.raises(AuditError, match="cannot be written"):
        AuditLog(tmp_path / "absent" / "audit.jsonl")


def test_a_full_disk_leaves_the_log_as_it_was(
    log: AuditLog, path: Path, monkeypatch: pytest.MonkeyPatch
):
    real, room = os.write, [40]

    def nearly_full(descriptor: int, content: Any) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content[: room.pop()])

    monkeypatch.setattr(audit_file.os, "write", nearly_full)
    refuses(log, path, "No space left")
    monkeypatch.undo()
    assert log.append("e").sequence == 4
    assert log.verify(expected_count=4).ok


def test_a_failed_flush_leaves_the_log_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch):
    log = AuditLog(path)

    def failing(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(audit_file.os, "fsync", failing)
    refuses(log, path, "Input/output error")


def test_short_writes_are_completed(log: AuditLog, monkeypatch: pytest.MonkeyPatch):
    real = os.write
    monkeypatch.setattr(audit_file.os, "write", lambda fd, content: real(fd, content[:7]))
    log.append("e", {"ids": "x" * 100})
    assert log.verify(expected_count=4).ok


def test_a_log_of_another_owner_is_still_appended_to(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
):
    def not_ours(*_args: Any, **_kwargs: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(audit_file.os, "utime", not_ours)
    log.append("e")
    assert log.append("e").sequence == 5
    assert log.verify(expected_count=5).ok


def test_a_hostile_line_costs_no_more_than_its_length(log: AuditLog, path: Path):
    line = b'{"a":"' + b'\\"' * 32_000 + b"[" * 40
    path.write_bytes(path.read_bytes() + line + b"\n")
    began = time.process_time()
    assert not verify_audit_log(path).ok
    assert time.process_time() - began < 1.0
