"""The service as a process of its own, on a free loopback port, and tokens for it.

with Service.running(tmp_path, MUNIMENT_MODEL="m", MUNIMENT_MODEL_BASE_URL=upstream.url) as s:
    httpx2.get(s.url + "/healthz")
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jwt

ROOT = Path(__file__).parents[2]
SECRET = "a secret of the tests, long enough for HS256"
_RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")
_SECONDS = 60


def token(user: str = "ana", **claims: Any) -> str:
    """A signed token; a claim given as None is left out."""
    whole = {
        "sub": user,
        "tenants": ["DEFAULT"],
        "role": "reader",
        "exp": int(time.time()) + 3600,
        **claims,
    }
    kept = {name: value for name, value in whole.items() if value is not None}
    return jwt.encode(kept, SECRET, algorithm="HS256")


def bearer(user: str = "ana", **claims: Any) -> dict[str, str]:
    """The header of a signed request."""
    return {"Authorization": f"Bearer {token(user, **claims)}"}


JWT_MODE = {"MUNIMENT_AUTH_MODE": "jwt", "MUNIMENT_AUTH_SECRET": SECRET}


@dataclass
class Service:
    """One running process."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    @contextmanager
    def running(cls, folder: Path, **environment: str) -> Iterator[Service]:
        """Start on `folder`/memory.db; stopped politely on leaving, unless it was killed."""
        service = cls.start(folder, **environment)
        try:
            yield service
        finally:
            service.stop()

    @classmethod
    def start(cls, folder: Path, **environment: str) -> Service:
        """Start, and wait until it listens."""
        log = folder / f"service-{time.time_ns()}.log"
        defaults = {
            "MUNIMENT_DATABASE_URL": f"sqlite:///{folder / 'memory.db'}",
            "MUNIMENT_EMBEDDER": "none",
            "MUNIMENT_PORT": "0",
        }
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("MUNIMENT_")}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "muniment", "serve"],
                stdout=output,
                stderr=output,
                env={**inherited, "PYTHONPATH": str(ROOT / "src"), **defaults, **environment},
                cwd=ROOT,
            )
        return cls(_address(process, log), process, log)

    def client(self, **headers: str) -> httpx2.Client:
        """An HTTP client of this service."""
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30)

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(_SECONDS)

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        self.process.kill()
        self.process.wait(_SECONDS)

    def logged(self) -> str:
        """Everything it has said."""
        return self.log.read_text("utf-8", "replace")


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        found = _RUNNING.search(log.read_text("utf-8", "replace"))
        if found is not None:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.02)
    process.kill()
    process.wait(_SECONDS)
    raise AssertionError(log.read_text("utf-8", "replace"))
