"""A PgBouncer in front of the tests' PostgreSQL, in transaction mode, with two server connections.

No Python package brings the program: Debian's is `pgbouncer`, which `.ci/run` installs.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.servers.databases import LOGIN, PASSWORD, owner_url
from tests.servers.postgres_program import as_user

SERVER_CONNECTIONS = 2
_SETTINGS = """
[databases]
* = host={host} port={port} user={login} password='{password}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
"""


def program() -> str | None:
    """Where it is, None where it is not installed."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def started(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A running pooler and its port; what it needs is written to `folder`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        own = int(listener.getsockname()[1])
    server = conninfo_to_dict(owner_url())
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        _SETTINGS.format(
            host=server["host"], port=server["port"], login=LOGIN, password=PASSWORD, own=own,
            size=SERVER_CONNECTIONS,
        )
    )  # fmt: skip
    for each in (folder, *folder.parents):
        with contextlib.suppress(PermissionError):
            each.chmod(each.stat().st_mode | 0o055)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - the program found above
            [str(program()), str(settings)], stdout=log, stderr=log, preexec_fn=as_user()
        )
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError("PgBouncer ended at its start")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", own), 1):
            return process, own
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise RuntimeError("PgBouncer did not start within ten seconds")
