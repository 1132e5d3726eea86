"""The compact forward index that is stored beside each searchable row."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from muniment.lexical.marks import marks_from, word_marks
from muniment.lexical.words import MAX_WORD_CHARACTERS, plain_words, stored_terms, words

BYTES_PER_TERM = 10
"""A term's hash (8 bytes) and its count (2 bytes), little-endian."""

_MOST_COUNTED = 0xFFFF
_ONCE = struct.pack("<H", 1)
_MOST_KNOWN = 65_536

_SEVERAL = -1


class _KnownWords(dict[str, int]):
    """What `learned` says of each folded word seen.

    Looking a word up costs what a dictionary does, which is what makes indexing fast. Emptied
    when it is full; long words, of which there is no end, are not kept.
    """

    def __init__(self, learned: Callable[[str], int]) -> None:
        self._learned = learned

    def __missing__(self, word: str) -> int:
        known = self._learned(word)
        if len(word) <= MAX_WORD_CHARACTERS:
            if len(self) >= _MOST_KNOWN:
                self.clear()
            self[word] = known
        return known


def _hash_of(word: str) -> int:
    # A word of a script without spaces is stored under several terms.
    terms = stored_terms(word)
    return term_hash(terms[0]) if len(terms) == 1 else _SEVERAL


_HASHES, _MARKS = _KnownWords(_hash_of), _KnownWords(word_marks)


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
    hashes = list(map(_HASHES.__getitem__, folded))
    if _SEVERAL in hashes:
        hashes = [term_hash(term) for word in folded for term in stored_terms(word)]
    length = len(hashes)
    if name:
        hashes += [each(word) for word in words(name) for each in (term_hash, name_hash)]
    marks = marks_from(text, folded, map(_MARKS.__getitem__, folded))
    return IndexedText(_packed(hashes), marks, length)


def _packed(hashes: list[int]) -> bytes:
    counts = dict.fromkeys(sorted(hashes), 0)
    distinct = len(counts)
    if distinct == len(hashes):
        return struct.pack(f"<{distinct}Q", *counts) + _ONCE * distinct
    for each in hashes:
        counts[each] += 1
    tallies: Iterable[int] = counts.values()
    if len(hashes) > _MOST_COUNTED:
        tallies = (min(tally, _MOST_COUNTED) for tally in tallies)
    return struct.pack(f"<{distinct}Q{distinct}H", *counts, *tallies)


@lru_cache(maxsize=65_536)
def term_hash(word: str) -> int:
    """The stable 64-bit number that stands for a term."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=4_096)
def name_hash(word: str) -> int:
    """The number that stands for a word of a speaker's name, apart from the same word in text."""
    digest = blake2b(word.encode(), digest_size=8, person=b"name").digest()
    return int.from_bytes(digest, "little")
