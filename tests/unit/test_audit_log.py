"""The audit log's records, anchors and refusals."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pydantic import Secret, SecretBytes, SecretStr

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope
from muniment.errors import AuditError, ScopeError
from muniment.governance import audit_chain, audit_file
from muniment.governance.audit import GENESIS, AuditLog, VerifyResult, verify_audit_log

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def log(path: Path) -> AuditLog:
    return AuditLog(path, fsync=False, clock=lambda: NOON)


def fill(log: AuditLog, count: int) -> None:
    for number in range(count):
        log.append("memory.deleted", {"id": f"m{number}", "count": number}, Scope("acme"))


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_new_log_is_empty_sound_and_readable_by_its_owner_alone(log: AuditLog, path: Path):
    assert log.verify() == VerifyResult(True, 0, GENESIS)
    assert path.stat().st_mode & 0o777 == 0o600


def test_opening_an_existing_log_changes_nothing(log: AuditLog, path: Path):
    fill(log, 2)
    before = path.read_bytes()
    AuditLog(path)
    assert path.read_bytes() == before


def test_a_record_holds_what_was_said_and_its_hash_can_be_recomputed_by_hand(
    log: AuditLog, path: Path
):
    log.append("memory.erased", {"count": 3, "ids": ["a", "b"]}, Scope("acme", subject="ü-日本"))
    record = json.loads(path.read_bytes())
    claimed = record.pop("hash")
    assert record == {
        "sequence": 1,
        "time": "2026-03-10T10:00:00.000000+00:00",
        "event": "memory.erased",
        "realm": "tenant=acme/subject=ü-日本",
        "data": {"count": 3, "ids": ["a", "b"]},
        "previous_hash": GENESIS,
    }
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    assert claimed == hashlib.sha256(canonical).hexdigest()


def test_each_record_is_chained_to_the_one_before(log: AuditLog, path: Path):
    fill(log, 3)
    records = [json.loads(line) for line in lines(path)]
    assert [record["sequence"] for record in records] == [1, 2, 3]
    hashes = [GENESIS, *(record["hash"] for record in records)]
    assert [record["previous_hash"] for record in records] == hashes[:-1]
    assert log.verify() == VerifyResult(True, 3, hashes[-1])


def test_what_append_returns_is_an_anchor(log: AuditLog):
    fill(log, 2)
    record = log.append("memory.saved")
    assert log.verify(expected_count=record.sequence, expected_last_hash=record.hash).ok


def test_another_log_on_the_same_file_continues_the_chain(log: AuditLog, path: Path):
    fill(log, 2)
    other = AuditLog(path, fsync=False)
    assert other.append("swept").sequence == 3
    assert log.append("swept").sequence == 4
    assert log.verify(expected_count=4).ok


def test_a_cut_off_end_is_found_with_an_anchor(log: AuditLog, path: Path):
    fill(log, 3)
    anchor = log.verify()
    path.write_bytes(b"".join(lines(path)[:2]))
    assert verify_audit_log(path).ok
    by_count = verify_audit_log(path, expected_count=3)
    assert (by_count.ok, by_count.records, by_count.line) == (False, 2, None)
    assert by_count.error == "2 records where 3 were expected"
    by_hash = verify_audit_log(path, expected_last_hash=anchor.last_hash)
    assert (by_hash.ok, by_hash.error) == (False, "the last hash is not the expected one")


def test_a_chain_rewritten_as_a_whole_is_found_with_an_anchor(log: AuditLog, tmp_path: Path):
    fill(log, 3)
    forged = AuditLog(tmp_path / "forged", fsync=False)
    fill(forged, 3)
    last = log.verify().last_hash
    assert verify_audit_log(tmp_path / "forged").ok
    assert not verify_audit_log(tmp_path / "forged", expected_last_hash=last).ok


def test_an_emptied_log_is_found_with_an_anchor(log: AuditLog, path: Path):
    fill(log, 1)
    path.write_bytes(b"")
    assert not verify_audit_log(path, expected_count=1).ok


def test_verify_names_the_line_and_what_stood_before_it(log: AuditLog, path: Path):
    fill(log, 4)
    kept = lines(path)
    path.write_bytes(b"".join(kept).replace(b'"id":"m2"', b'"id":"m9"'))
    result = log.verify()
    assert (result.ok, result.records, result.line) == (False, 2, 3)
    assert result.last_hash == json.loads(kept[1])["hash"]
    assert result.error == "line 3: the hash does not match the record"


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param(lambda line: line.replace(b":", b": ", 1), id="blank added"),
        pytest.param(lambda line: b'{"event":"other",' + line[1:], id="key doubled"),
        pytest.param(lambda line: line[:-1] + b"\r\n", id="carriage return"),
        pytest.param(lambda line: line.replace(b'"sequence":1', b'"sequence":1.0'), id="float"),
        pytest.param(lambda line: line.replace(b'"sequence":1', b'"sequence":true'), id="bool"),
        pytest.param(lambda line: line.decode().encode("utf-16"), id="other encoding"),
    ],
)
def test_another_spelling_of_the_same_record_is_an_edit(log: AuditLog, path: Path, spelling: Any):
    fill(log, 2)
    first, second = lines(path)
    path.write_bytes(spelling(first) + second)
    result = log.verify()
    assert (result.ok, result.records, result.line) == (False, 0, 1)


def test_a_record_has_at_most_64_kib(log: AuditLog, path: Path):
    size = len(log.append("e", {"ids": ""}).line())
    room = 64 * 1024 - size
    log.append("e", {"ids": "x" * room})
    assert len(lines(path)[1]) == 64 * 1024 + 1
    with pytest.raises(AuditError, match="65536"):
        log.append("e", {"ids": "x" * (room + 1)})
    assert log.verify(expected_count=2).ok


@pytest.mark.parametrize("secret", [SecretStr("tok-1"), SecretBytes(b"tok-1"), Secret("tok-1")])
def test_secrets_are_written_redacted(log: AuditLog, path: Path, secret: object):
    log.append("configured", {"key": secret, "nested": [{"key": secret}]})
    assert b"tok-1" not in path.read_bytes()
    data = json.loads(path.read_bytes())["data"]
    assert data == {"key": "**********", "nested": [{"key": "**********"}]}
    assert log.verify().ok


def test_the_audit_log_needs_no_pydantic(path: Path):
    script = (
        "import sys\nfrom muniment.governance.audit import AuditLog\n"
        "AuditLog(sys.argv[1]).append('started', {'id': 'm1'})\n"
        "sys.exit('pydantic' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, check=True, env=environment)  # noqa: S603 - our own script
    assert verify_audit_log(path, expected_count=1).ok


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"in": value}
    return value


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize(
    "data",
    [
        ["not a mapping"],
        {"value": float("nan")},
        {"value": float("inf")},
        {"value": object()},
        {"value": {1: "key"}},
        {"value": b"bytes"},
        {"value": 10**5000},
        nested(33),
        endless(),
    ],
    ids=["list", "nan", "inf", "object", "key", "bytes", "long int", "deep", "endless"],
)
def test_data_that_json_cannot_hold_is_refused_and_nothing_written(
    log: AuditLog, path: Path, data: Any
):
    with pytest.raises(AuditError, match="data"):
        log.append("e", data)
    assert path.read_bytes() == b""


def test_the_deepest_and_widest_data_that_is_accepted_is_also_verified(log: AuditLog):
    log.append("e", nested(32))
    log.append("e", {"rows": [{"id": "[{"} for _ in range(500)]})
    assert log.verify(expected_count=2).ok


@pytest.mark.parametrize("event", ["", "x" * 257, "two\nlines", "nul\x00", None, 7])
def test_an_event_that_is_no_name_is_refused(log: AuditLog, event: Any):
    with pytest.raises(AuditError, match="event"):
        log.append(event)


@pytest.mark.parametrize("text", ["\ud800", "\u202e", "é", "🙂", "\x00", '"\\'])
def test_any_text_in_data_reads_back_as_it_was(log: AuditLog, path: Path, text: str):
    log.append("e", {text: text})
    assert json.loads(path.read_bytes())["data"] == {text: text}
    assert log.verify().ok


def test_a_realm_is_recorded_by_its_key(log: AuditLog):
    scope = Scope("acme", subject="alice", agent="a1", session="s1")
    assert log.append("e", None, scope).realm == scope.key
    assert log.append("e").realm is None


def test_owners_that_fit_no_realm_are_recorded_unambiguously(log: AuditLog):
    owner = MemoryOwner(tenant_id="a/subject=b", user_id="50%=half")
    assert log.append("e", None, owner).realm == "tenant=a%2Fsubject%3Db/subject=50%25%3Dhalf"
    assert log.append("e", None, RealmKey("a", "b")).realm == "tenant=a/subject=b"


def test_a_scope_of_another_type_is_refused(log: AuditLog, path: Path):
    with pytest.raises(ScopeError):
        log.append("e", None, "tenant=acme")  # type: ignore[arg-type]
    assert path.read_bytes() == b""


def test_a_naive_clock_is_refused(path: Path):
    log = AuditLog(path, clock=lambda: datetime(2026, 3, 10))
    with pytest.raises(AuditError, match="aware"):
        log.append("e")
    assert path.read_bytes() == b""


def test_a_clock_that_steps_back_leaves_a_sound_log(path: Path):
    times = iter([NOON, NOON - timedelta(days=400), NOON.astimezone(UTC)])
    log = AuditLog(path, fsync=False, clock=lambda: next(times))
    fill(log, 3)
    assert log.verify(expected_count=3).ok


def test_records_reach_the_disk_unless_that_is_turned_off(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[int] = []
    monkeypatch.setattr(audit_file.os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
    log = AuditLog(path)
    synced.clear()
    log.append("e")
    assert synced == [path.stat().st_size]
    AuditLog(path, fsync=False).append("e")
    assert len(synced) == 1


def test_the_cost_of_an_append_does_not_grow_with_the_log(
    log: AuditLog, path: Path, monkeypatch: pytest.MonkeyPatch
):
    read: list[int] = []
    real = audit_chain.read_record

    def counted(line: bytes, **rest: Any) -> Any:
        read.append(len(line))
        return real(line, **rest)

    monkeypatch.setattr(audit_chain, "read_record", counted)
    fill(log, 300)
    assert read == []
    AuditLog(path, fsync=False).append("elsewhere")
    assert len(read) == 300
    read.clear()
    fill(log, 50)
    assert len(read) == 1  # only what the other one had appended
