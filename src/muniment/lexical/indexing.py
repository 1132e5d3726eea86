"""The compact forward index that is stored beside each searchable row."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from muniment.lexical.marks import marks_of
from muniment.lexical.words import plain_words, stored_terms, words

BYTES_PER_TERM = 10
"""A term's hash (8 bytes) and its count (2 bytes), little-endian."""

_MOST_COUNTED = 0xFFFF


@dataclass(frozen=True, slots=True)
class IndexedText:
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
    counts = Counter([term_hash(term) for word in folded for term in stored_terms(word)])
    length = counts.total()
    for word in words(name) if name else ():
        counts[term_hash(word)] += 1
        counts[name_hash(word)] += 1
    ordered = sorted(counts.items())
    hashes = struct.pack(f"<{len(ordered)}Q", *[term for term, _ in ordered])
    tallies = struct.pack(f"<{len(ordered)}H", *[min(n, _MOST_COUNTED) for _, n in ordered])
    return IndexedText(hashes + tallies, marks_of(text, folded), length)


@lru_cache(maxsize=65_536)
def term_hash(word: str) -> int:
    """The stable 64-bit number that stands for a term."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=4_096)
def name_hash(word: str) -> int:
    """The number that stands for a word of a speaker's name, apart from the same word in text."""
    digest = blake2b(word.encode(), digest_size=8, person=b"name").digest()
    return int.from_bytes(digest, "little")
