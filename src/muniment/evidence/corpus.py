"""The rows of one audience in the form that scoring reads: numpy columns and an inverted index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muniment.evidence.columns import Column
from muniment.evidence.postings import Counts, Postings, Slots
from muniment.evidence.vectors import Floats, FloatVectors, Vectors
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
    importance: float = 0.5


class Columns(NamedTuple):
    """Searchable rows field by field: each sequence runs over the same rows (see CorpusRow).

    ``trust``, ``importance`` and the limits of validity may be one number for all of them.
    """

    key: Sequence[int]
    kind: Sequence[str]
    terms: Sequence[bytes]
    marks: Sequence[int]
    length: Sequence[int]
    at: ArrayLike
    order: Sequence[int]
    vector: Sequence[bytes | None]
    session: Sequence[str | None] | None = None
    role: Sequence[str | None] | None = None
    valid_from: ArrayLike = -inf
    invalid_at: ArrayLike = inf
    expires_at: ArrayLike = inf
    trust: ArrayLike = 0
    importance: ArrayLike = 0.5

    @classmethod
    def of(cls, rows: Sequence[CorpusRow]) -> Columns:
        """The columns of ``rows``, of which there is at least one."""
        return cls(
            key=[row.key for row in rows],
            kind=[row.kind for row in rows],
            terms=[row.indexed.terms for row in rows],
            marks=[row.indexed.marks for row in rows],
            length=[row.indexed.length for row in rows],
            at=[row.at for row in rows],
            order=[row.order for row in rows],
            vector=[row.vector for row in rows],
            session=[row.session for row in rows],
            role=[row.role for row in rows],
            valid_from=[row.valid_from for row in rows],
            invalid_at=[row.invalid_at for row in rows],
            expires_at=[row.expires_at for row in rows],
            trust=[row.trust for row in rows],
            importance=[row.importance for row in rows],
        )


class Corpus:
    """A growing image of one audience's rows. Not safe for use by several threads at once.

    ``vectors`` is the form in which embeddings are given and held.
    """

    def __init__(self, vectors: type[Vectors] = FloatVectors) -> None:
        self._form = vectors
        self.keys, self.order = Column("int64"), Column("int64")
        self.alive = Column("bool")
        self.kinds, self.roles = Column("int32"), Column("int32", fill=_NONE)
        self.sessions = Column("int32", fill=_NONE)
        self.at, self.valid_from = Column("float64"), Column("float64", fill=-inf)
        self.invalid_at = Column("float64", fill=inf)
        self.expires_at = Column("float64", fill=inf)
        self.trust, self.marks, self.lengths = Column("int8"), Column("int64"), Column("int32")
        self.has_vector, self.importance = Column("bool"), Column("float32", fill=0.5)
        self._columns: tuple[Column, ...] = tuple(
            column for column in vars(self).values() if isinstance(column, Column)
        )
        self._vectors: Vectors | None = None
        self._codes: dict[tuple[str, str], int] = {}
        self._postings = Postings()
        self._size = 0
        self._present = 0
        self._greatest_key: float = -inf
        self._total_length = 0
        self._links: tuple[Slots, Slots] | None = None

    def __len__(self) -> int:
        return self._present

    @property
    def size(self) -> int:
        """Slots in use, those of removed rows included: the length of every column's view."""
        return self._size

    @property
    def nbytes(self) -> int:
        """The memory that the rows take, about."""
        return sum(column.nbytes for column in self._every_column()) + self._postings.nbytes

    @property
    def total_length(self) -> int:
        """Terms in all rows, with repetitions."""
        return self._total_length

    def similarity(self, asked: Floats) -> Floats | None:
        """Each slot's cosine to the unit vector ``asked``; None where there is none to compare."""
        if self._vectors is None or self._vectors.width != len(asked):
            return None
        return self._vectors.similarity(asked)

    def upsert(self, rows: Iterable[CorpusRow]) -> None:
        """Add rows, or replace those of the same key; the last of several with one key stays."""
        added = list({row.key: row for row in rows}.values())
        if added:
            self.put(Columns.of(added))

    def put(self, rows: Columns) -> None:
        """:meth:`upsert` of rows with distinct keys, field by field."""
        if not rows.key:
            return
        # Stores number rows as they arrive: new rows replace nothing, mostly.
        self._forget([key for key in rows.key if key <= self._greatest_key])
        self._greatest_key = max(self._greatest_key, *rows.key)
        self._append(rows)
        self._links = None

    def remove(self, keys: Iterable[int]) -> None:
        """Drop rows; unknown keys are passed over."""
        self._forget(list(keys))
        self._links = None
        if self._size > _COMPACT_FROM and self._size > 2 * self._present:
            self._compact()

    def code(self, what: str, value: str | None) -> int:
        """The number that stands for a kind, role or session here; -1 for one never seen."""
        return _NONE if value is None else self._codes.get((what, value), _NONE)

    @property
    def codes(self) -> int:
        """How many numbers :meth:`code` has given out: all are below this."""
        return len(self._codes)

    def find(self, terms: Sequence[int]) -> list[tuple[Slots, Counts]]:
        """For each term the slots of present rows that hold it, and how often each does."""
        found = self._postings.find(terms)
        if self._present == self._size:
            return found
        present = [self.alive.view[slots] for slots, _ in found]
        return [(s[kept], c[kept]) for (s, c), kept in zip(found, present, strict=True)]

    def find_any(self, terms: NDArray[np.uint64]) -> Slots:
        """The slots of present rows that hold one of ``terms`` or more, ascending."""
        slots = self._postings.find_any(terms)
        return slots if self._present == self._size else slots[self.alive.view[slots]]

    def links(self) -> tuple[Slots, Slots]:
        """Each slot's previous and next message of the same session, -1 where there is none; so
        is the last of each array, at -1: what follows none."""
        if self._links is None:
            self._links = self._linked()
        return self._links

    def _every_column(self) -> Iterator[Column]:
        yield from self._columns
        if self._vectors is not None:
            yield from self._vectors.columns

    def _append(self, rows: Columns) -> None:
        first = self._size
        self._size += len(rows.key)
        self._present += len(rows.key)
        for column in self._every_column():
            column.grow(self._size)
        self._write(slice(first, self._size), rows)
        self._postings.add(first, rows.terms)
        self._write_vectors(first, rows.vector)
        self._total_length += sum(rows.length)

    def _write(self, place: slice, rows: Columns) -> None:
        self.alive.put(place, True)
        self.keys.put(place, rows.key)
        self.order.put(place, rows.order)
        self.kinds.put(place, self._coded("kind", rows.kind))
        if rows.role is not None:
            self.roles.put(place, self._coded("role", rows.role))
        if rows.session is not None:
            self.sessions.put(place, self._coded("session", rows.session))
        self.at.put(place, rows.at)
        self.valid_from.put(place, rows.valid_from)
        self.invalid_at.put(place, rows.invalid_at)
        self.expires_at.put(place, rows.expires_at)
        self.trust.put(place, rows.trust)
        self.importance.put(place, rows.importance)
        self.marks.put(place, rows.marks)
        self.lengths.put(place, rows.length)

    def _write_vectors(self, first: int, stored: Sequence[bytes | None]) -> None:
        given = next(filter(None, stored), None)
        if given is None:
            return
        if self._vectors is None:
            self._vectors = self._form(given)
            for column in self._vectors.columns:
                column.grow(self._size)
        # A vector of another model cannot be compared: the row is then found by its words.
        size = self._vectors.stored_bytes
        fits = [vector if vector and len(vector) == size else None for vector in stored]
        slots = np.array([slot for slot, vector in enumerate(fits, first) if vector], np.intp)
        if len(slots):
            self._vectors.put(slots, list(filter(None, fits)))
            self.has_vector.put(slots, True)

    def _coded(self, what: str, values: Sequence[str | None]) -> list[int]:
        code = {value: self.code(what, value) for value in set(values)}
        for value in sorted(value for value in code if value is not None):
            code[value] = self._codes.setdefault((what, value), len(self._codes))
        return list(map(code.__getitem__, values))

    def _forget(self, keys: list[int]) -> None:
        if not keys:
            return
        held = self.alive.view & np.isin(self.keys.view, keys)
        slots = np.flatnonzero(held)
        self._present -= len(slots)
        self._total_length -= int(self.lengths.view[slots].sum())
        self.alive.put(slots, False)
        self.has_vector.put(slots, False)
        if self._vectors is not None:
            self._vectors.clear(slots)
            if not self.has_vector.view.any():
                self._vectors = None  # as if there had never been one

    def _linked(self) -> tuple[Slots, Slots]:
        talk = self._messages_in_order()
        if not len(talk):
            none = np.broadcast_to(np.int32(_NONE), (self._size + 1,))
            return none, none
        before = np.full(self._size + 1, _NONE, dtype=np.int32)
        after = before.copy()
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
        for column in self._every_column():
            column.keep(kept)
        self._size = len(kept)
