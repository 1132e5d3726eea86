"""The rows of one audience in the form that scoring reads: numpy columns and an inverted index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.evidence.columns import Column
from muniment.evidence.postings import Counts, Postings, Slots
from muniment.evidence.vectors import Floats, unpack_vector
from muniment.lexical.indexing import IndexedText

MESSAGE = "message"
"""The kind of a conversation's raw message; every other kind is a memory type."""

_NONE = -1
_COMPACT_FROM = 1_024


class CorpusRow(NamedTuple):
    """One searchable row.

    ``key`` is the store's own number of the row, unique within its corpus. ``at`` and the three
    limits of validity are seconds since 1970; ``order`` is the row's place in arrival order, by
    which a session's messages follow each other. ``trust`` is a rank. ``vector`` is packed by
    :func:`muniment.evidence.vectors.pack_vector`, None where there is no embedding (yet).
    """

    key: int
    kind: str
    indexed: IndexedText
    at: float
    order: int
    session: str | None = None
    role: str | None = None
    valid_from: float = -inf
    invalid_at: float = inf
    expires_at: float = inf
    trust: int = 0
    vector: bytes | None = None


class Corpus:
    """A growing image of one audience's rows. Not safe for use by several threads at once."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.keys, self.order = Column("int64"), Column("int64")
        self.alive = Column("bool")
        self.kinds, self.roles = Column("int32"), Column("int32")
        self.sessions = Column("int32", fill=_NONE)
        self.at, self.valid_from = Column("float64"), Column("float64")
        self.invalid_at, self.expires_at = Column("float64"), Column("float64")
        self.trust, self.marks, self.lengths = Column("int8"), Column("int64"), Column("int32")
        self.has_vector = Column("bool")
        self._vectors: Column | None = None
        self._columns: tuple[Column, ...] = tuple(
            column for column in vars(self).values() if isinstance(column, Column)
        )
        self._codes: dict[tuple[str, str], int] = {}
        self._slots: dict[int, int] = {}
        self._postings = Postings()
        self._size = 0
        self._total_length = 0
        self._links: tuple[Slots, Slots] | None = None

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """Slots in use, those of removed rows included: the length of every column's view."""
        return self._size

    @property
    def total_length(self) -> int:
        """Terms in all rows, with repetitions."""
        return self._total_length

    @property
    def vectors(self) -> Floats | None:
        """Unit vectors by slot (zeros where a row has none); None where no row has one."""
        return None if self._vectors is None else self._vectors.view

    def upsert(self, rows: Iterable[CorpusRow]) -> None:
        """Add rows, or replace those of the same key; the last of several with one key stays."""
        added = list({row.key: row for row in rows}.values())
        if not added:
            return
        for row in added:
            self._forget(row.key)
        self._append(added)
        self._links = None

    def remove(self, keys: Iterable[int]) -> None:
        """Drop rows; unknown keys are passed over."""
        for key in keys:
            self._forget(key)
        self._links = None
        if self._size > _COMPACT_FROM and self._size > 2 * len(self._slots):
            self._compact()

    def code(self, what: str, value: str | None) -> int:
        """The number that stands for a kind, role or session here; -1 for one never seen."""
        return _NONE if value is None else self._codes.get((what, value), _NONE)

    def find(self, term: int) -> tuple[Slots, Counts]:
        """The slots of present rows that hold ``term``, and how often each does."""
        slots, counts = self._postings.find(term)
        if len(self._slots) == self._size:
            return slots, counts
        present = self.alive.view[slots]
        return slots[present], counts[present]

    def find_any(self, terms: NDArray[np.uint64]) -> Slots:
        """The slots of present rows that hold one of ``terms`` or more, ascending."""
        slots = self._postings.find_any(terms)
        return slots if len(self._slots) == self._size else slots[self.alive.view[slots]]

    def links(self) -> tuple[Slots, Slots]:
        """Each slot's previous and next message of the same session, -1 where there is none."""
        if self._links is None:
            self._links = self._linked()
        return self._links

    def _append(self, rows: Sequence[CorpusRow]) -> None:
        first = self._size
        self._size += len(rows)
        for column in self._columns:
            column.grow(self._size)
        if self._vectors is not None:
            self._vectors.grow(self._size)
        self._slots.update((row.key, slot) for slot, row in enumerate(rows, first))
        self._write(slice(first, self._size), rows)
        for slot, row in enumerate(rows, first):
            self._postings.add(slot, row.indexed.terms)
        self._write_vectors(first, [row.vector for row in rows])
        self._total_length += sum(row.indexed.length for row in rows)

    def _write(self, place: slice, rows: Sequence[CorpusRow]) -> None:
        self.alive.view[place] = True
        self.keys.view[place] = [row.key for row in rows]
        self.order.view[place] = [row.order for row in rows]
        self.kinds.view[place] = [self._coded("kind", row.kind) for row in rows]
        self.roles.view[place] = [self._coded("role", row.role) for row in rows]
        self.sessions.view[place] = [self._coded("session", row.session) for row in rows]
        self.at.view[place] = [row.at for row in rows]
        self.valid_from.view[place] = [row.valid_from for row in rows]
        self.invalid_at.view[place] = [row.invalid_at for row in rows]
        self.expires_at.view[place] = [row.expires_at for row in rows]
        self.trust.view[place] = [row.trust for row in rows]
        self.marks.view[place] = [row.indexed.marks for row in rows]
        self.lengths.view[place] = [row.indexed.length for row in rows]

    def _write_vectors(self, first: int, stored: Sequence[bytes | None]) -> None:
        given = next(filter(None, stored), None)
        if given is None:
            return
        if self._vectors is None:
            self._vectors = Column("float32", len(unpack_vector(given)))
            self._vectors.grow(self._size)
        # A vector of another model cannot be compared: the row is then found by its words.
        size = self._vectors.view.itemsize * self._vectors.view.shape[1]
        fits = [vector if vector and len(vector) == size else None for vector in stored]
        slots = [slot for slot, vector in enumerate(fits, first) if vector]
        block = unpack_vector(b"".join(filter(None, fits)))
        self._vectors.view[slots] = block.reshape(len(slots), -1) if slots else 0
        self.has_vector.view[slots] = True

    def _coded(self, what: str, value: str | None) -> int:
        if value is None:
            return _NONE
        return self._codes.setdefault((what, value), len(self._codes))

    def _forget(self, key: int) -> None:
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        self.alive.view[slot] = False
        self.has_vector.view[slot] = False
        self._total_length -= int(self.lengths.view[slot])
        if self._vectors is not None:
            self._vectors.view[slot] = 0

    def _linked(self) -> tuple[Slots, Slots]:
        before = np.full(self._size, _NONE, dtype=np.int32)
        after = before.copy()
        talk = self._messages_in_order()
        sessions = self.sessions.view[talk]
        same = (sessions[1:] == sessions[:-1]) & (sessions[1:] != _NONE)
        before[talk[1:][same]] = talk[:-1][same]
        after[talk[:-1][same]] = talk[1:][same]
        return before, after

    def _messages_in_order(self) -> NDArray[np.int64]:
        message = self.kinds.view == self.code("kind", MESSAGE)
        slots = np.flatnonzero(message & self.alive.view)
        return slots[np.lexsort((self.order.view[slots], self.sessions.view[slots]))]

    def _compact(self) -> None:
        kept = np.flatnonzero(self.alive.view)
        moved = np.full(self._size, _NONE, dtype=np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        self._postings.rebuild(moved)
        every: Sequence[Column] = [*self._columns, *([self._vectors] if self._vectors else [])]
        for column in every:
            column.keep(kept)
        self._slots = {key: int(moved[slot]) for key, slot in self._slots.items()}
        self._size = len(kept)
