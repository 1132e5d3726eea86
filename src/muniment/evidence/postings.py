"""The inverted index of one corpus: which rows hold a term, and how often.

New rows wait until they are asked for, then become a sorted segment; segments of like size are
merged, so that a row is sorted a logarithmic number of times and a term is looked up in few places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.lexical.indexing import BYTES_PER_TERM

Slots = NDArray[np.int32]
Counts = NDArray[np.uint16]

_MERGE_RATIO = 4


@dataclass(frozen=True, slots=True)
class _Segment:
    """Postings by ascending term; ``slots`` and ``counts`` are parallel to ``terms``."""

    terms: NDArray[np.uint64]
    slots: Slots
    counts: Counts

    def find(self, term: int) -> slice:
        wanted = np.uint64(term)
        first = int(np.searchsorted(self.terms, wanted, side="left"))
        return slice(first, int(np.searchsorted(self.terms, wanted, side="right")))

    def find_any(self, terms: NDArray[np.uint64]) -> Slots:
        first = np.searchsorted(self.terms, terms, side="left")
        last = np.searchsorted(self.terms, terms, side="right")
        held = np.flatnonzero(last > first)
        parts = [self.slots[first[place] : last[place]] for place in held]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)


class Postings:
    """Rows by term. Slots are given once and never used again until :meth:`rebuild`."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._waiting: list[tuple[int, bytes]] = []

    def add(self, slot: int, terms: bytes) -> None:
        """Take the packed terms of a row (see ``IndexedText.terms``)."""
        if terms:
            self._waiting.append((slot, terms))

    def find(self, term: int) -> tuple[Slots, Counts]:
        """The slots that hold ``term`` (removed rows included), with its counts there."""
        self._settle()
        found = [(segment, segment.find(term)) for segment in self._segments]
        hits = [(s.slots[part], s.counts[part]) for s, part in found if part.stop > part.start]
        if len(hits) == 1:
            return hits[0]
        if not hits:
            return np.empty(0, np.int32), np.empty(0, np.uint16)
        return np.concatenate([h[0] for h in hits]), np.concatenate([h[1] for h in hits])

    def find_any(self, terms: NDArray[np.uint64]) -> Slots:
        """The slots that hold one of ``terms`` or more (removed rows included), each once."""
        self._settle()
        found = [segment.find_any(terms) for segment in self._segments]
        slots = np.concatenate(found) if found else np.empty(0, np.int32)
        marked = np.zeros(int(slots.max(initial=-1)) + 1, np.bool_)
        marked[slots] = True
        return np.flatnonzero(marked).astype(np.int32)

    def rebuild(self, moved: NDArray[np.int32]) -> None:
        """Give each slot its number in ``moved``; a negative one drops its postings."""
        self._settle()
        segments = [_renumbered(segment, moved) for segment in self._segments]
        self._segments = [segment for segment in segments if len(segment.terms)]

    def _settle(self) -> None:
        if self._waiting:
            self._segments.append(_segment_of(self._waiting))
            self._waiting = []
            _merge_alike(self._segments)


def _segment_of(rows: list[tuple[int, bytes]]) -> _Segment:
    sizes = [len(terms) // BYTES_PER_TERM for _, terms in rows]
    hashes = b"".join(terms[: 8 * size] for (_, terms), size in zip(rows, sizes, strict=True))
    tallies = b"".join(terms[8 * size :] for (_, terms), size in zip(rows, sizes, strict=True))
    slots = np.repeat(np.array([slot for slot, _ in rows], dtype=np.int32), sizes)
    return _sorted(
        np.frombuffer(hashes, dtype="<u8").astype(np.uint64),
        slots,
        np.frombuffer(tallies, dtype="<u2").astype(np.uint16),
    )


def _sorted(terms: NDArray[np.uint64], slots: Slots, counts: Counts) -> _Segment:
    order = np.argsort(terms, kind="stable")
    return _Segment(terms[order], slots[order], counts[order])


def _merge_alike(segments: list[_Segment]) -> None:
    while len(segments) > 1 and len(segments[-2].terms) < _MERGE_RATIO * len(segments[-1].terms):
        newer, older = segments.pop(), segments.pop()
        segments.append(
            _sorted(
                np.concatenate([older.terms, newer.terms]),
                np.concatenate([older.slots, newer.slots]),
                np.concatenate([older.counts, newer.counts]),
            )
        )


def _renumbered(segment: _Segment, moved: NDArray[np.int32]) -> _Segment:
    slots = moved[segment.slots]
    kept = slots >= 0
    return _Segment(segment.terms[kept], slots[kept], segment.counts[kept])
