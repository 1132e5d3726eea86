"""Processor time of this process, and of a PostgreSQL server that it started (Linux)."""

from __future__ import annotations

import time
from pathlib import Path


class Processor:
    """Counts from `begin`; `postmaster` is the server's first process, None for one elsewhere."""

    def __init__(self, postmaster: int | None) -> None:
        self._postmaster = postmaster
        self._client = self._server = 0.0

    def begin(self) -> None:
        """Start counting anew."""
        self._client, self._server = time.process_time(), self._server_seconds()

    def cost(self, calls: int) -> dict[str, float]:
        """Milliseconds a call since `begin`, of this process and of the server."""
        client = time.process_time() - self._client
        found = {"processor_client_ms": round(client / calls * 1000, 2)}
        if self._postmaster is not None:
            server = self._server_seconds() - self._server
            found["processor_server_ms"] = round(server / calls * 1000, 2)
        return found

    def _server_seconds(self) -> float:
        if self._postmaster is None:
            return 0.0
        return sum(_seconds(process, self._postmaster) for process in Path("/proc").glob("[0-9]*"))


def _seconds(process: Path, parent: int) -> float:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        spent = (process / "schedstat").read_text().split()[0]
    except OSError:  # it has ended
        return 0.0
    return int(spent) / 1e9 if int(fields[1]) == parent else 0.0
