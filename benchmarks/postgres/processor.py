"""Processor time of this process, and of a PostgreSQL server that it started (Linux)."""

from __future__ import annotations

import time
from pathlib import Path


class Processor:
    """Counts from `begin`; `postmaster` is the server's first process, None for one elsewhere.

    A server's process that ends meanwhile is not counted.
    """

    def __init__(self, postmaster: int | None) -> None:
        self._postmaster = postmaster
        self._client, self._server = 0.0, dict[str, int]()

    def begin(self) -> None:
        """Start counting anew."""
        self._client, self._server = time.process_time(), self._nanoseconds()

    def cost(self, calls: int) -> dict[str, float]:
        """Milliseconds a call since `begin`, of this process and of the server."""
        client = time.process_time() - self._client
        found = {"processor_client_ms": round(client / calls * 1000, 2)}
        if self._postmaster is not None:
            now = self._nanoseconds()
            server = sum(spent - self._server.get(name, 0) for name, spent in now.items())
            found["processor_server_ms"] = round(server / calls / 1e6, 2)
        return found

    def _nanoseconds(self) -> dict[str, int]:
        """What each of the server's processes has spent."""
        every = Path("/proc").glob("[0-9]*") if self._postmaster is not None else ()
        spent = {process.name: _spent(process, self._postmaster) for process in every}
        return {name: each for name, each in spent.items() if each is not None}


def _spent(process: Path, parent: int | None) -> int | None:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        return (
            int((process / "schedstat").read_text().split()[0])
            if int(fields[1]) == parent
            else None
        )
    except OSError:  # it has ended
        return None
