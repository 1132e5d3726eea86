"""Many writers at once, and a writer killed in the middle, leave one sound chain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from muniment.errors import AuditError
from muniment.governance.audit import AuditLog, verify_audit_log

EACH = 40
WRITER = """
import sys
from muniment.governance.audit import AuditLog
log = AuditLog(sys.argv[1], fsync=False)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    log.append("memory.saved", {"writer": sys.argv[3], "number": number})
    if sys.argv[3] == "endless":
        print(number + 1, flush=True)
"""

KILLED_HALF_WAY = """
import os, signal, sys
from muniment.governance.audit import AuditLog
write = os.write
def killed(descriptor, content):
    write(descriptor, content[:50])
    os.kill(os.getpid(), signal.SIGKILL)
os.write = killed
AuditLog(sys.argv[1], fsync=False).append("during")
"""
FORKED = """
import os, sys
from muniment.governance.audit import AuditLog
log = AuditLog(sys.argv[1], fsync=False)
log.append("before")
child = os.fork()
log.append("parent" if child else "child")
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert log.append("after").sequence == 4
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def run(script: str, path: Path) -> int:
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.run(command, env=environment(), check=False).returncode  # noqa: S603 - ours


def writer(path: Path, count: int, name: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", WRITER, str(path), str(count), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def append_many(log: AuditLog, start: threading.Barrier) -> list[int]:
    start.wait()
    return [log.append("memory.saved", {"number": n}).sequence for n in range(EACH)]


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "an object a thread"])
def test_eight_threads_append_one_chain(path: Path, shared: bool):
    one, start = AuditLog(path, fsync=False), threading.Barrier(8)
    logs = [one if shared else AuditLog(path, fsync=False) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        sequences = [*pool.map(append_many, logs, [start] * 8)]
    assert sorted(number for thread in sequences for number in thread) == [*range(1, 8 * EACH + 1)]
    assert verify_audit_log(path, expected_count=8 * EACH).ok


def test_eight_threads_and_two_processes_append_one_chain(path: Path):
    log, start = AuditLog(path, fsync=False), threading.Barrier(9)
    processes = [writer(path, 4 * EACH, name) for name in ("first", "second")]
    with ThreadPoolExecutor(8) as pool:
        threads = [pool.submit(append_many, log, start) for _ in range(8)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        start.wait()
        assert all(len(thread.result()) == EACH for thread in threads)
    for process in processes:
        with process:
            process.communicate()
        assert process.returncode == 0
    assert verify_audit_log(path, expected_count=16 * EACH).ok


def test_verifying_beside_a_writer_always_finds_a_sound_log(path: Path):
    log, start = AuditLog(path, fsync=False), threading.Barrier(2)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(append_many, log, start)
        start.wait()
        seen = [0]
        while not writing.done():
            result = verify_audit_log(path)
            assert result.ok, result.error
            seen.append(result.records)
    assert seen == sorted(seen)


def test_a_writer_killed_at_work_loses_no_acknowledged_record(path: Path):
    process = writer(path, 1_000_000, "endless")
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        for _ in range(50):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split(b"\n")[:-1])])
    result = verify_audit_log(path)
    assert result.records >= acknowledged
    if result.ok:  # the lock died with its holder, so the chain goes on
        assert AuditLog(path, fsync=False).append("restarted").sequence == result.records + 1
    else:
        assert result.error is not None
        assert result.error.endswith("the last line is torn")


def test_a_writer_killed_between_two_halves_of_a_line_leaves_it_found_and_named(path: Path):
    AuditLog(path, fsync=False).append("before")
    assert run(KILLED_HALF_WAY, path) == -signal.SIGKILL
    result = verify_audit_log(path)
    assert (result.records, result.error) == (1, "line 2: the last line is torn")
    with pytest.raises(AuditError, match="line 2: the last line is torn"):
        AuditLog(path, fsync=False).append("after")


def test_a_forked_writer_neither_keeps_nor_breaks_the_lock(path: Path):
    assert run(FORKED, path) == 0
    assert verify_audit_log(path, expected_count=4).ok
