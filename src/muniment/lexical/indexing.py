"""The compact forward index that is stored beside each searchable row."""

from __future__ import annotations

import struct
from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import NamedTuple

from muniment.lexical.marks import marks_from, word_marks
from muniment.lexical.words import MAX_WORD_CHARACTERS, plain_words, stored_terms, words

BYTES_PER_TERM = 10
"""A term's hash (8 bytes) and its count (2 bytes), little-endian."""

_MOST_COUNTED = 0xFFFF
_ONCE = struct.pack("<H", 1)
_MOST_KNOWN = 65_536

Known = tuple[int | None, int]
_HASH, _MARKS = itemgetter(0), itemgetter(1)


class _KnownWords(dict[str, Known]):
    """For each folded word seen its one term's hash (None where it has several) and its marks.

    Looking a word up costs what a dictionary does, which is what makes indexing fast. Emptied
    when it is full; long words, of which there is no end, are not kept.
    """

    def __missing__(self, word: str) -> Known:
        terms = stored_terms(word)
        known = (term_hash(terms[0]) if len(terms) == 1 else None, word_marks(word))
        if len(word) <= MAX_WORD_CHARACTERS:
            if len(self) >= _MOST_KNOWN:
                self.clear()
            self[word] = known
        return known


_KNOWN = _KnownWords()


class IndexedText(NamedTuple):
    """One row's searchable form.

    ``terms`` holds n hashes (unsigned 64 bit) and then n counts (unsigned 16 bit), little-endian,
    by ascending hash. ``marks`` are the bits of :mod:`muniment.lexical.marks`. ``length`` counts
    the terms with repetitions, the speaker's name left out.
    """

    terms: bytes
    marks: int
    length: int


def index_text(text: str, *, name: str | None = None) -> IndexedText:
    """Index ``text``, found by its speaker's ``name`` too."""
    folded = plain_words(text)
    known = list(map(_KNOWN.__getitem__, folded))
    counts = Counter(map(_HASH, known))
    if None in counts:  # a word of a script without spaces is stored under several terms
        del counts[None]
        counts.update(term_hash(term) for word in folded for term in _several_terms(word))
    length = total = counts.total()
    for word in words(name) if name else ():
        counts[term_hash(word)] += 1
        counts[name_hash(word)] += 1
        total += 2
    marks = marks_from(text, folded, map(_MARKS, known))
    return IndexedText(_packed(counts, total), marks, length)


def _packed(counts: Counter[int], total: int) -> bytes:
    ordered = sorted(counts)
    hashes = struct.pack(f"<{len(ordered)}Q", *ordered)
    if len(ordered) == total:
        return hashes + _ONCE * total
    tallies = list(map(counts.__getitem__, ordered))
    if total > _MOST_COUNTED:
        tallies = [min(tally, _MOST_COUNTED) for tally in tallies]
    return hashes + struct.pack(f"<{len(ordered)}H", *tallies)


@lru_cache(maxsize=65_536)
def term_hash(word: str) -> int:
    """The stable 64-bit number that stands for a term."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=4_096)
def name_hash(word: str) -> int:
    """The number that stands for a word of a speaker's name, apart from the same word in text."""
    digest = blake2b(word.encode(), digest_size=8, person=b"name").digest()
    return int.from_bytes(digest, "little")


def _several_terms(word: str) -> list[str]:
    terms = stored_terms(word)
    return terms if len(terms) > 1 else []
