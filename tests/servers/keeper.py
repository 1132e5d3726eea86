"""Runs one server for as long as a test session lives: ``python keeper.py KIND FOLDER PID``.

The server ends with the keeper, and the keeper with the process PID, however that one ends.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

ADDRESS, FAILURE = "address", "failure"


def main(kind: str, folder: Path, owner: int) -> None:
    """Start the server, say where it is in a file, and wait for the end."""
    if kind == "postgres":
        from tests.servers.postgres_program import started
    else:
        from tests.servers.valkey_program import started
    stop_reading, stop_writing = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(stop_writing, b"."))
    try:
        process, address = started(folder)
    except Exception as error:
        _say(folder / FAILURE, f"{type(error).__name__}: {error}")
        raise
    try:
        _say(folder / ADDRESS, address)
        select.select([os.pidfd_open(owner), stop_reading], [], [])
    finally:
        _stop(process)


def _say(file: Path, text: str) -> None:
    whole = file.with_suffix(".part")
    whole.write_text(text, "utf-8")
    whole.rename(file)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
