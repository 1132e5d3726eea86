"""BERT's uncased WordPiece, as the MiniLM models were trained with it.

Own code, because the usual library for it brings a hub client and a dozen packages along.
Source of the rules: https://github.com/google-research/bert (tokenization.py).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice

UNKNOWN, START, END = "[UNK]", "[CLS]", "[SEP]"
_LONGEST_WORD = 100
# Every code point once met is remembered; the bound keeps hostile text from filling memory.
_REMEMBERED = 1 << 15
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


def _is_ideograph(code: int) -> bool:
    return any(low <= code <= high for low, high in _IDEOGRAPHS)


def _stands_alone(char: str) -> bool:
    """Punctuation, and the ASCII symbols that BERT counts as such ($, +, ^, ...)."""
    symbol = char.isascii() and not char.isalnum() and char.isprintable() and char != " "
    return symbol or unicodedata.category(char)[0] == "P"


def _bare(char: str) -> str:
    """`char` in lower case without its accents, each punctuation mark set apart."""
    marks = unicodedata.normalize("NFD", char)
    letters = "".join(mark for mark in marks if unicodedata.category(mark) != "Mn").lower()
    return "".join(f" {one} " if _stands_alone(one) else one for one in letters)


def _rewrite(code: int) -> str:
    """What the code point `code` becomes before words are split at blanks."""
    char = chr(code)
    if char in "\t\n\r" or unicodedata.category(char)[0] == "Z":
        return " "
    if code == 0xFFFD or unicodedata.category(char)[0] == "C":
        return ""
    bare = _bare(char)
    return f" {bare} " if _is_ideograph(code) else bare


class _Rewriting(dict[int, str]):
    def __missing__(self, code: int) -> str:
        text = _rewrite(code)
        if len(self) < _REMEMBERED:
            self[code] = text
        return text


class WordPiece:
    """Text to token ids under a vocabulary (token to id)."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._ids = vocabulary
        self._rewriting = _Rewriting()

    def encode(self, text: str, *, limit: int) -> list[int]:
        """At most `limit` ids, the start and end marks included; the rest is cut off."""
        pieces = islice(self._pieces(text, limit), limit - 2)
        return [self._ids[START], *pieces, self._ids[END]]

    def _pieces(self, text: str, limit: int) -> Iterator[int]:
        # Each word gives at least one piece, so that `limit` words are enough.
        for word in text.translate(self._rewriting).split(None, limit)[:limit]:
            yield from self._split(word)

    def _split(self, word: str) -> list[int]:
        whole = self._ids.get(word)
        if whole is not None:
            return [whole]
        if len(word) > _LONGEST_WORD:
            return [self._ids[UNKNOWN]]
        return self._longest_first(word)

    def _longest_first(self, word: str) -> list[int]:
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    ids.append(piece)
                    start = end
                    break
            else:
                return [self._ids[UNKNOWN]]
        return ids
