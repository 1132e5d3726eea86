"""What the faces of one SQLite store share: the engine, the clock, images and the embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import apsw

from muniment.errors import MemoryStoreError
from muniment.evidence.vectors import pack_vector
from muniment.ports import MemoryEmbedder
from muniment.stores.embedding import RowEmbedder
from muniment.stores.sqlite.engine import Engine
from muniment.stores.sqlite.images import Images

Clock = Callable[[], datetime]
_FLOAT_BYTES = 4


def system_clock() -> datetime:
    """The current instant, in UTC."""
    return datetime.now(UTC)


class Core:
    """Shared by the faces; not public."""

    def __init__(
        self, path: str | Path, *, clock: Clock | None, embedder: MemoryEmbedder | None
    ) -> None:
        self.engine = Engine(path)
        self.images = Images()
        self.clock = clock or system_clock
        self._embedder = RowEmbedder(embedder)
        self._model = str(getattr(embedder, "model_name", "custom"))
        try:
            self._width = self.engine.read(_recorded_width)
            self._check_model()
        except BaseException:
            self.engine.close()
            raise

    # -- embeddings ------------------------------------------------------------------------

    async def embed(self, text: str) -> bytes | None:
        """One text's vector; None without an embedder, or where it fails (said in the log)."""
        return (await self.embed_all([text]))[0]

    async def embed_all(self, texts: Sequence[str]) -> list[bytes | None]:
        """A vector a text, in order; None where there is none: the row stays pending."""
        vectors = await self._embedder.many(texts)
        for vector in vectors:
            if vector is not None:
                await self._claim_width(len(vector) // _FLOAT_BYTES)
                break
        return vectors

    async def checked_vector(self, values: Sequence[float] | None) -> bytes | None:
        """`values` as stored; MemoryStoreError where another dimension is in use here."""
        if values is None:
            return None
        await self._claim_width(len(values))
        return pack_vector(values)

    async def _claim_width(self, width: int) -> None:
        if self._width is None:
            self._width = await self.engine.write_async(lambda db: _record(db, self._model, width))
        if width != self._width:
            raise MemoryStoreError(
                f"embeddings of {width} dimensions do not fit a file of {self._width}: "
                "open it with the embedder it was made with, or run reindex"
            )

    def comparable(
        self, db: apsw.Connection, values: Sequence[float] | None
    ) -> Sequence[float] | None:
        """A query's embedding, where this file has vectors that it can be compared with."""
        if values is not None and self._width is None:
            self._width = _recorded_width(db)
        return values if values is not None and len(values) == self._width else None

    def _check_model(self) -> None:
        recorded = self.engine.read(_recorded_model)
        if self._embedder.present and recorded not in (None, self._model):
            raise MemoryStoreError(
                "the file's embeddings come from another model: open it with that embedder, "
                "with embedder=None, or run reindex"
            )

    def forget_model(self) -> None:
        """Let the next vector decide model and dimension again (for reindex)."""
        self._width = None


def _recorded_width(db: apsw.Connection) -> int | None:
    row = db.execute("SELECT value FROM setting WHERE name = 'embedding_width'").fetchone()
    return None if row is None else int(row[0])


def _recorded_model(db: apsw.Connection) -> str | None:
    row = db.execute("SELECT value FROM setting WHERE name = 'embedding_model'").fetchone()
    return None if row is None else str(row[0])


def _record(db: apsw.Connection, model: str, width: int) -> int:
    """The width that holds from now on: the first one recorded."""
    pairs = (("embedding_model", model), ("embedding_width", str(width)))
    db.executemany("INSERT OR IGNORE INTO setting (name, value) VALUES (?, ?)", pairs)
    return _recorded_width(db) or width
