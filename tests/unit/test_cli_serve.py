"""`muniment serve` that cannot start says why in one line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import muniment

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(muniment.__file__).parents[1]),
    "MUNIMENT_EMBEDDER": "none",
}


def serve(folder: Path, url: str, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "muniment", "serve", *arguments],
        cwd=folder,
        env={**ENVIRONMENT, "MUNIMENT_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


def test_a_store_that_cannot_be_opened_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    code, last = serve(tmp_path, "sqlite:///missing/memory.db", "--port", "0")
    assert code == 1
    assert last == "muniment: the folder of the database file is not there"


def test_an_address_that_is_taken_is_named_with_the_options_that_change_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, last = serve(tmp_path, "sqlite:///memory.db", "--port", str(port))
    assert code == 1
    assert last == f"muniment: cannot listen on 127.0.0.1, port {port}: see --host and --port"


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    assert serve(tmp_path, "sqlite:///memory.db", "--port", port)[0] == 2
