"""A command that is interrupted, or whose streams are closed, full or narrow, ends in order."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import muniment
from muniment.cli.app import run

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(muniment.__file__).parents[1]),
    "MUNIMENT_EMBEDDER": "none",
}
COMMAND = f"{sys.executable} -m muniment"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    assert run(["add", "Ana prefers email"]) == 0
    return tmp_path


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        ["/bin/bash", "-c", line],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def waits(process: int) -> bool:
    """Whether the process sleeps, and has had no processor time, for half a second."""
    seen = set()
    for _ in range(10):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        seen.add((fields[0], *fields[11:13]))
        time.sleep(0.05)
    return len(seen) == 1 and seen.pop()[0] == "S"


def exit_code_within(seconds: float, process: int) -> int:
    """How a process ended; AssertionError where it goes on."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise AssertionError("it goes on")


def test_an_interrupt_at_a_question_ends_the_command_and_changes_nothing(folder: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        arguments = [sys.executable, "-m", "muniment", "erase", "--tenant", "DEFAULT"]
        os.chdir(folder)
        os.execve(sys.executable, arguments, ENVIRONMENT)  # noqa: S606 - our own command
    said = b""
    while b"Go on?" not in said:
        assert select.select([terminal], [], [], 60)[0]
        said += os.read(terminal, 1000)
    # In the moment before it reads, Python would note an interrupt and wait for the next key.
    assert any(waits(process) for _ in range(60))
    os.write(terminal, b"\x03")
    assert exit_code_within(60, process) == 130
    os.close(terminal)
    assert "Ana prefers email" in shell(folder, f"{COMMAND} search email").stdout


def test_a_closed_standard_input_is_a_blank_one(folder: Path) -> None:
    done = shell(folder, f"{COMMAND} add - <&-")
    assert (done.returncode, done.stderr) == (2, "muniment: TEXT: must not be blank\n")
    asked = shell(folder, f"{COMMAND} erase --tenant DEFAULT <&-")
    assert asked.returncode == 2
    assert "give --yes" in asked.stderr


def test_a_full_standard_output_is_said_in_words(folder: Path) -> None:
    done = shell(folder, f"{COMMAND} search email > /dev/full")
    assert (done.returncode, done.stderr) == (1, "muniment: No space left on device\n")


def test_a_demo_that_nobody_reads_on_leaves_without_a_word(folder: Path) -> None:
    done = shell(folder, f"{COMMAND} demo | head -1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("columns", ["20", "40", "80", "200"])
def test_no_figure_is_cut_off_on_a_narrow_terminal(
    folder: Path, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    capsys.readouterr()
    for command in (["usage"], ["recall", "email", "--explain"], ["doctor"]):
        assert run(command) == 0
        printed = capsys.readouterr().out
        assert "…" not in printed
        lines = [line for line in printed.splitlines() if not line.startswith("extra ")]
        assert max(map(len, lines)) <= int(columns)  # but for advice, which is copied
