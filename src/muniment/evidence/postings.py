"""The inverted index of one corpus: which rows hold a term, and how often.

New rows wait until they are asked for, then become a sorted segment; segments of like size are
merged, so that a row is sorted a logarithmic number of times and a term is looked up in few places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.lexical.indexing import BYTES_PER_TERM

Slots = NDArray[np.integer]
Counts = NDArray[np.integer]

_MERGE_RATIO = 4


@dataclass(frozen=True, slots=True)
class _Segment:
    """Postings by ascending term: those of ``terms[i]``, each term once, are the ``slots`` and
    ``counts`` from ``starts[i]`` to ``starts[i + 1]``. Every number in the fewest bytes."""

    terms: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    slots: NDArray[np.unsignedinteger]
    counts: NDArray[np.unsignedinteger]

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.terms, self.starts, self.slots, self.counts))

    def find(self, terms: NDArray[np.uint64]) -> list[tuple[int, int]]:
        """Where each term's postings begin and end: the same place for one that is not here."""
        if not len(self):
            return [(0, 0)] * len(terms)
        first = self.terms.searchsorted(terms)
        last = first + (self.terms.take(first, mode="clip") == terms)
        return list(zip(self.starts[first].tolist(), self.starts[last].tolist(), strict=True))

    def find_any(self, terms: NDArray[np.uint64]) -> list[NDArray[np.unsignedinteger]]:
        places = np.searchsorted(self.terms, terms)
        inside = places < len(self.terms)
        places, terms = places[inside], terms[inside]
        held = places[self.terms[places] == terms]
        return [self.slots[self.starts[place] : self.starts[place + 1]] for place in held]

    def each(self) -> tuple[NDArray[np.uint64], Slots, Counts]:
        """Every posting as term, slot and count."""
        terms = np.repeat(self.terms, np.diff(self.starts))
        return terms, self.slots.astype(np.int32), self.counts.astype(np.uint16)


class Postings:
    """Rows by term. Slots are given once and never used again until :meth:`rebuild`."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._waiting: list[tuple[int, bytes]] = []

    def add(self, first: int, terms: Sequence[bytes]) -> None:
        """Take the packed terms (see ``IndexedText.terms``) of the slots from ``first`` on."""
        self._waiting.extend(enumerate(terms, first))

    @property
    def nbytes(self) -> int:
        """The memory that the postings take."""
        self._settle()
        return sum(segment.nbytes for segment in self._segments)

    def find(self, terms: Sequence[int]) -> list[tuple[Slots, Counts]]:
        """For each term the slots that hold it (removed rows included), with its counts there."""
        self._settle()
        wanted = np.array(terms, np.uint64)
        hits: list[list[tuple[Slots, Counts]]] = [[] for _ in terms]
        for segment in self._segments:
            for found, (first, last) in zip(hits, segment.find(wanted), strict=True):
                if last > first:
                    found.append((segment.slots[first:last], segment.counts[first:last]))
        return [_joined(found) for found in hits]

    def find_any(self, terms: NDArray[np.uint64]) -> Slots:
        """The slots that hold one of ``terms`` or more (removed rows included), each once."""
        self._settle()
        found = [slots for segment in self._segments for slots in segment.find_any(terms)]
        slots = np.concatenate(found, dtype=np.int32) if found else np.empty(0, np.int32)
        marked = np.zeros(int(slots.max(initial=-1)) + 1, np.bool_)
        marked[slots] = True
        return np.flatnonzero(marked).astype(np.int32)

    def rebuild(self, moved: NDArray[np.int32]) -> None:
        """Give each slot its number in ``moved``; a negative one drops its postings."""
        self._settle()
        segments = [_renumbered(segment, moved) for segment in self._segments]
        self._segments = [segment for segment in segments if len(segment)]

    def _settle(self) -> None:
        if self._waiting:
            self._segments.append(_segment_of(self._waiting))
            self._waiting = []
            _merge_alike(self._segments)


def _joined(hits: Sequence[tuple[Slots, Counts]]) -> tuple[Slots, Counts]:
    if len(hits) == 1:
        return hits[0]
    if not hits:
        return np.empty(0, np.int32), np.empty(0, np.uint16)
    return np.concatenate([slots for slots, _ in hits]), np.concatenate([c for _, c in hits])


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
    ordered = terms[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    starts = np.r_[first, len(ordered)].astype(np.uint32)
    return _Segment(ordered[first], starts, _small(slots[order]), _small(counts[order]))


def _small(values: NDArray[np.integer]) -> NDArray[np.unsignedinteger]:
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _merge_alike(segments: list[_Segment]) -> None:
    while len(segments) > 1 and len(segments[-2]) < _MERGE_RATIO * len(segments[-1]):
        newer, older = segments.pop().each(), segments.pop().each()
        segments.append(
            _sorted(
                np.concatenate([older[0], newer[0]]),
                np.concatenate([older[1], newer[1]]),
                np.concatenate([older[2], newer[2]]),
            )
        )


def _renumbered(segment: _Segment, moved: NDArray[np.int32]) -> _Segment:
    terms, slots, counts = segment.each()
    slots = moved[slots]
    kept = slots >= 0
    return _sorted(terms[kept], slots[kept], counts[kept])
