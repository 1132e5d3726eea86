"""How large a run is, and what its rows share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.latency.environments import Peer, PeerUnavailable
from benchmarks.latency.figures import Figure
from benchmarks.latency.texts import DIMENSIONS, Texts


@dataclass(frozen=True, slots=True)
class Run:
    """``folder`` is a scratch folder on the disk that is measured; ``quick`` divides sizes."""

    folder: Path
    calls: int = 60
    quick: bool = False
    peers: bool = True
    synchronous: str = "FULL"

    def size(self, rows: int) -> int:
        """How many rows to fill in for a row that is stated for ``rows``."""
        return max(50, rows // 20) if self.quick else rows

    def place(self, name: str) -> Path:
        """An empty folder of its own for one store."""
        place = self.folder / name.replace(" ", "-")
        place.mkdir(parents=True)
        return place

    def settings(self) -> dict[str, Any]:
        """For the record."""
        return {name: str(value) for name, value in asdict(self).items() if name != "folder"}

    def shared(
        self, texts: int, *, questions: Iterable[str] = (), vectors: bool = True
    ) -> dict[str, Any]:
        """Files with the texts, questions and vectors that peers are to use, the same as ours."""
        place = self.folder / f"shared-{texts}"
        place.mkdir(exist_ok=True)
        asked = list(questions) or Texts(99).questions(self.calls)
        written = {"texts": Texts(4).sentences(texts), "questions": asked}
        (place / "texts.json").write_text(json.dumps(written))
        if vectors:
            (place / "vectors.f32").write_bytes(Texts(4).vectors(texts).tobytes())
            (place / "questions.f32").write_bytes(Texts(98).vectors(len(asked)).tobytes())
        return {"folder": str(place), "dimensions": DIMENSIONS, "calls": self.calls}

    def of_peer(
        self, row: str, peer: Peer, asked: dict[str, Any], read: Callable[[Any], list[Figure]]
    ) -> list[Figure]:
        """A peer's figures; one without a value that says why, where there are none."""
        if not self.peers:
            return []
        try:
            return read(peer.measure(asked | {"row": row}))
        except PeerUnavailable as error:
            return [Figure(row, peer.name, None, note=str(error))]
