"""An environment of its own for each peer, made from packages once and kept."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / ".bench"
SCRIPTS = Path(__file__).parent / "peers"
_INSTALL_SECONDS = 900
_RUN_SECONDS = 1_800
_TOLD = 200


class PeerUnavailable(Exception):
    """The peer could not be installed, or its script failed; the message says why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A system to compare with: what to install, the Python it needs, and its script."""

    name: str
    requirements: tuple[str, ...]
    script: str
    python: str = "3.11"

    def measure(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The script's answer (one JSON object, on its last line) to ``asked``."""
        command = [str(self.interpreter()), str(SCRIPTS / self.script), json.dumps(asked)]
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise PeerUnavailable(f"took longer than {_RUN_SECONDS} s") from None
        if done.returncode:
            raise PeerUnavailable(_last_line(done.stderr)[:_TOLD])
        answer: dict[str, Any] = json.loads(_last_line(done.stdout))
        return answer

    def interpreter(self) -> Path:
        """The Python of the environment, which is made where it is not there."""
        folder = FOLDER / self.name
        python, stamp = folder / "bin" / "python", folder / ".complete"
        if not stamp.exists() or stamp.read_text() != "\n".join(self.requirements):
            self._install(folder, python)
            stamp.write_text("\n".join(self.requirements))
        return python

    def _install(self, folder: Path, python: Path) -> None:
        base = _python(self.python)
        if base is None:
            raise PeerUnavailable(f"needs Python {self.python}, which is not here")
        shutil.rmtree(folder, ignore_errors=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        for command in ([base, "-m", "venv", str(folder)], [*pip, *self.requirements]):
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
            )
            if done.returncode:
                raise PeerUnavailable(f"not installed: {_last_line(done.stderr)[:_TOLD]}")


def _python(wanted: str) -> str | None:
    """An interpreter of this version: on the path, or among those that pyenv keeps."""
    found = shutil.which(f"python{wanted}")
    if found is not None and _is(found, wanted):
        return found
    kept = sorted(Path.home().glob(f".pyenv/versions/{wanted}*/bin/python"))
    return str(kept[-1]) if kept else None


def _is(python: str, wanted: str) -> bool:
    # A shim on the path may stand for a version that is not installed.
    done = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode == 0 and f" {wanted}." in done.stdout


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


RAGLEAP = Peer("ragleap-memory", ("ragleap-memory==0.1.0",), "ragleap.py")
LANGGRAPH = Peer(
    "langgraph",
    ("langgraph", "langgraph-checkpoint-sqlite", "pysqlite3-binary"),
    "langgraph_store.py",
)
CHROMA = Peer("chromadb", ("chromadb",), "chroma.py")
MEM0 = Peer("mem0ai", ("mem0ai", "chromadb"), "mem0_chroma.py")
HARBORRAG = Peer(
    "harborrag-memory",
    ("harborrag-memory==2.0.0a2", "harborrag-adapters==2.0.0a2"),
    "harborrag.py",
    python="3.12",
)
