"""The servers of one test session: started when first needed, shared by its worker processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.servers.keeper import ADDRESS, FAILURE

_FOLDER, _OWNER = "MUNIMENT_TEST_SERVERS", "MUNIMENT_TEST_OWNER"
_GIVEN = {"postgres": "MUNIMENT_TEST_POSTGRES_URL", "valkey": "MUNIMENT_TEST_VALKEY_URL"}
_ROOT = Path(__file__).parents[2]
_START_SECONDS = 180  # on a busy machine


def begin() -> None:
    """Give this process, the session's first, a folder that workers find in the environment."""
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="muniment-test-")
    os.environ[_OWNER] = str(os.getpid())


def folder() -> Path:
    """The session's folder."""
    return Path(os.environ[_FOLDER])


def address(kind: str) -> str:
    """Where the server is; it is started where nobody did so yet.

    A running server that the environment names is used in its place. RuntimeError where it
    cannot be had: a test that needs it fails, and is never passed over.
    """
    given = os.environ.get(_GIVEN[kind])
    if given:
        return given
    place = folder() / kind
    with locked(kind):
        if not place.exists():
            place.mkdir()
            _keep(kind, place)
    if (place / FAILURE).exists():
        raise RuntimeError(f"{kind} did not start: {(place / FAILURE).read_text('utf-8')}")
    return (place / ADDRESS).read_text("utf-8")


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One worker at a time."""
    with (folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _keep(kind: str, place: Path) -> None:
    paths = os.pathsep.join([str(_ROOT), *filter(None, sys.path)])
    keeper = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "tests.servers.keeper", kind, str(place), os.environ[_OWNER]],
        {**os.environ, "PYTHONPATH": paths},
        setsid=True,
    )
    (place / "pid").write_text(str(keeper), "utf-8")
    watched = os.pidfd_open(keeper)
    for _ in range(_START_SECONDS * 20):
        if (place / ADDRESS).exists() or (place / FAILURE).exists():
            break
        if select.select([watched], [], [], 0.05)[0] and not (place / FAILURE).exists():
            (place / FAILURE).write_text("its keeper ended", "utf-8")
    os.close(watched)


def end() -> None:
    """Stop what was started, wait until it is gone, and remove the folder."""
    for file in folder().glob("*/pid"):
        with contextlib.suppress(ProcessLookupError):
            keeper = int(file.read_text("utf-8"))
            watched = os.pidfd_open(keeper)
            os.kill(keeper, signal.SIGTERM)
            select.select([watched], [], [], 30)
            os.close(watched)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(keeper, os.WNOHANG)
    shutil.rmtree(folder(), ignore_errors=True)
