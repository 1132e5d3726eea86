"""Whatever is done to the bytes of an audit log is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from muniment.domain.realm import Scope
from muniment.errors import AuditError
from muniment.governance.audit import AuditLog, VerifyResult, verify_audit_log

COUNT = 6
ON_A_FILE = settings(max_examples=150, deadline=None)
ROW = st.integers(0, COUNT - 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[bytes]:
    log = AuditLog(folder / "original", fsync=False)
    for number in range(COUNT):
        log.append("memory.saved", {"id": f"m{number}"}, Scope("acme", subject="alice"))
    return (folder / "original").read_bytes().splitlines(keepends=True)


def verified(folder: Path, content: bytes, **anchor: int) -> VerifyResult:
    (folder / "tampered").write_bytes(content)
    result = verify_audit_log(folder / "tampered", **anchor)  # type: ignore[arg-type]
    if not result.ok and not anchor:
        refuses_to_append(folder / "tampered", content)
    return result


def refuses_to_append(path: Path, content: bytes) -> None:
    with pytest.raises(AuditError, match="damaged"):
        AuditLog(path, fsync=False).append("memory.saved")
    assert path.read_bytes() == content


@ON_A_FILE
@given(data=st.data())
def test_an_edited_byte_is_found_on_its_line_or_the_next(
    folder: Path, rows: list[bytes], data: st.DataObject
):
    row = data.draw(ROW)
    at = data.draw(st.integers(0, len(rows[row]) - 1))
    byte = data.draw(st.integers(0, 255))
    assume(byte != rows[row][at])
    edited = [*rows]
    edited[row] = rows[row][:at] + bytes([byte]) + rows[row][at + 1 :]
    result = verified(folder, b"".join(edited))
    assert not result.ok
    assert (result.records, result.line) == (row, row + 1)


@ON_A_FILE
@given(row=st.integers(0, COUNT - 2), length=st.integers(1, COUNT - 1))
def test_removed_records_are_found(folder: Path, rows: list[bytes], row: int, length: int):
    end = min(row + length, COUNT - 1)  # without the last: that needs an anchor
    result = verified(folder, b"".join(rows[:row] + rows[end:]))
    assert (result.ok, result.line) == (False, row + 1)


@ON_A_FILE
@given(order=st.permutations(range(COUNT)))
def test_reordered_records_are_found(folder: Path, rows: list[bytes], order: list[int]):
    assume(order != sorted(order))
    first = next(place for place, row in enumerate(order) if place != row)
    result = verified(folder, b"".join(rows[row] for row in order))
    assert (result.ok, result.line) == (False, first + 1)


@ON_A_FILE
@given(row=st.integers(0, COUNT), copied=ROW)
def test_a_record_inserted_again_is_found(folder: Path, rows: list[bytes], row: int, copied: int):
    result = verified(folder, b"".join([*rows[:row], rows[copied], *rows[row:]]))
    place = row + 1 if row == copied else row
    assert (result.ok, result.line) == (False, place + 1)


@ON_A_FILE
@given(row=st.integers(0, COUNT), junk=st.binary(min_size=1, max_size=200))
def test_inserted_bytes_are_found(folder: Path, rows: list[bytes], row: int, junk: bytes):
    result = verified(folder, b"".join([*rows[:row], junk, *rows[row:]]))
    assert (result.ok, result.line) == (False, row + 1)


@ON_A_FILE
@given(data=st.data())
def test_a_cut_is_found_inside_a_line_at_once_and_elsewhere_by_the_anchor(
    folder: Path, rows: list[bytes], data: st.DataObject
):
    whole = b"".join(rows)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    complete = cut.count(b"\n")
    result = verified(folder, cut)
    if cut == b"".join(rows[:complete]):
        assert result.ok
    else:
        assert (result.ok, result.line) == (False, complete + 1)
    assert not verified(folder, cut, expected_count=COUNT).ok


SCALARS = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@settings(ON_A_FILE, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.dictionaries(st.text(), VALUES, max_size=5))
def test_whatever_json_is_appended_verifies(folder: Path, data: dict[str, object]):
    path = folder / "json"
    path.unlink(missing_ok=True)
    log = AuditLog(path, fsync=False)
    assert log.append("e", data).data == data
    assert log.verify(expected_count=1).ok
