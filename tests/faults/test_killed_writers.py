"""The short form of `make bench-faults`: processes killed while they write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import apsw

from benchmarks.faults.agreement import disagreements
from benchmarks.faults.journal import after, operations
from muniment import Scope, SQLiteStore

ROOT = Path(__file__).parents[2]
ALICE = Scope("acme", subject="alice")


def test_ten_runs_of_killed_writers_lose_nothing_and_leave_nothing_half_done() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.faults", "--runs", "10", "--seed", "3"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert said["runs"] == "10, processes killed: 20"
    assert int(said["acknowledged"].split()[0]) > 20
    assert int(said["records in the logs"]) > 20


def test_a_lost_record_a_lost_row_and_a_repeated_record_are_noticed(tmp_path: Path) -> None:
    """What the runs rely on can fail."""
    database, log = tmp_path / "memory.db", tmp_path / "audit.jsonl"
    with SQLiteStore(database, audit=log) as store:
        store.add(ALICE, "one")
        store.add(ALICE, "two")
        checked = store.verify_audit()
        assert checked is not None
        assert (checked.ok, checked.records) == (True, 2)
    assert disagreements(database, log) == []
    with SQLiteStore(database) as unrecorded:
        entry = unrecorded.add(ALICE, "three")
    assert disagreements(database, log) == ["memories: 0 in the log alone, 1 in the file alone"]
    connection = apsw.Connection(str(database))
    connection.execute("DELETE FROM memory")
    connection.close()
    assert disagreements(database, log) == ["memories: 2 in the log alone, 0 in the file alone"]
    assert entry.id not in log.read_text()
    log.write_bytes(log.read_bytes()[:-5])
    assert disagreements(database, log) == ["the log: line 2: the last line is torn"]


def test_a_journal_tells_what_was_acknowledged_from_what_was_under_way(tmp_path: Path) -> None:
    begun = [
        {"op": "add", "texts": ["a"], "session": None},
        {"op": "supersede", "old": "a", "new": "b"},
        {"op": "forget", "texts": ["b"]},
    ]
    lines = [json.dumps(begun[0]), "done", json.dumps(begun[1]), "done", json.dumps(begun[2]), ""]
    journal = tmp_path / "w.journal"
    journal.write_text("\n".join(lines))
    done, under_way = operations(journal)
    assert (done, under_way) == (begun[:2], begun[2])
    state = after(after({}, done[0]), done[1])
    assert {text: held.replaced_by for text, held in state.items()} == {"a": "b", "b": None}
    assert {text: held.replaced_by for text, held in after(state, begun[2]).items()} == {"a": None}
