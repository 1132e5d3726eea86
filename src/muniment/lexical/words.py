"""The word rules: how text is folded, divided and stemmed, the same for what is stored and asked.

Words are divided at Unicode word boundaries (UAX #29), case and diacritics are folded, and
English and Russian words are stemmed. Scripts that are written without spaces are searched by
substring: each run gives its single characters and its pairs of neighbours.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

import Stemmer  # type: ignore[import-not-found]
from apsw.unicode import word_iter

MAX_WORD_CHARACTERS = 64
"""Longer words are known by their beginning, so that one endless word stays one small term."""

_ASCII_WORD = re.compile(r"[a-z0-9]+(?:(?<=[a-z])'(?=[a-z])[a-z0-9]+)*")
_ASCII_FOLDED = bytes(
    ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else ord(" ")
    for code in range(256)
)
_INNER_BREAK = re.compile(r"[._:·:;,/\\]+")
_DIACRITICS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
)
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef\U0001f3fb-\U0001f3ff]"
)
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
_CYRILLIC = re.compile("[\u0400-\u04ff]+")
_REPLACED = {
    "ł": "l",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "ı": "i",
    "æ": "ae",
    "œ": "oe",
    "þ": "th",
    "ħ": "h",
} | {"\u2019": "'", "\u02bc": "'", "\uff07": "'", "\u2018": "'"}
_TO_REPLACE = re.compile(f"[{''.join(_REPLACED)}]")
_TYPOGRAPHIC = (("\u2019", "'"), ("\u2018", "'"), *((sign, " ") for sign in "“”–—…"))
_stemmers = threading.local()


def words(text: str) -> list[str]:
    """The terms under which ``text`` is stored, in order, repetitions kept."""
    return [term for word in plain_words(text) for term in stored_terms(word)]


def asked_words(text: str) -> list[str]:
    """The terms to look up for ``text``: as :func:`words`, but a run of a script without spaces
    asks for its pairs only, since its single characters are found almost everywhere."""
    return [term for word in plain_words(text) for term in asked_terms(word)]


def plain_words(text: str) -> list[str]:
    """The folded words of ``text`` before stemming; a run without spaces is one word."""
    plain = text if text.isascii() else _without_typography(text)
    if not plain.isascii():
        return list(_unicode_words(fold(text)))
    if "'" in plain:
        return _ASCII_WORD.findall(plain.lower())
    return plain.encode().translate(_ASCII_FOLDED).decode().split()  # the same, in half the time


def fold(text: str) -> str:
    """``text`` without case, diacritics, invisible characters and typographic apostrophes.

    Marks that spell vowels (Indic scripts, Thai, Japanese) stay. A lone surrogate becomes a
    replacement character, so that no text can make a search fail.
    """
    valid = text.encode("utf-8", "replace").decode("utf-8").replace("\u200b", " ")
    visible = _INVISIBLE.sub("", valid.replace("\u200d", ""))
    parts = unicodedata.normalize("NFKD", visible.casefold())
    whole = unicodedata.normalize("NFKC", _DIACRITICS.sub("", _keep_short_i(parts)))
    return _TO_REPLACE.sub(lambda found: _REPLACED[found.group()], whole.casefold())


def stored_terms(word: str) -> list[str]:
    """The terms that one of :func:`plain_words` is stored under."""
    if word.isascii() or not _UNSPACED.fullmatch(word):
        return [stem(word)]
    return [*word, *_pairs(word)]


def asked_terms(word: str) -> list[str]:
    """The terms to look up for one of :func:`plain_words`."""
    if word.isascii() or not _UNSPACED.fullmatch(word):
        return [stem(word)]
    return _pairs(word) or [word]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a folded word; words of other scripts than Latin and Cyrillic stay whole."""
    short = word[:MAX_WORD_CHARACTERS]
    if short.isascii():
        return _stemmer("english")(_without_possessive(short))
    if _CYRILLIC.fullmatch(short):
        return _stemmer("russian")(short)
    return short


def _without_typography(text: str) -> str:
    # Most text that is not ASCII is so by quotes and dashes alone, which divide words as ' and
    # blanks do: it need not go the long way.
    for sign, plain in _TYPOGRAPHIC:
        text = text.replace(sign, plain)
    return text


def _keep_short_i(parts: str) -> str:
    # In Cyrillic the breve of й makes another letter, which endings (and so stems) depend on.
    return parts.replace("\u0438\u0306", "\u0439")


def _unicode_words(folded: str) -> Iterator[str]:
    position = 0
    for run in _UNSPACED.finditer(folded):
        yield from _spaced_words(folded[position : run.start()])
        yield run.group()
        position = run.end()
    yield from _spaced_words(folded[position:])


def _spaced_words(folded: str) -> Iterator[str]:
    for word in word_iter(folded, emoji=True, regional_indicator=True):
        if word.isalnum():
            yield word
        elif word.isascii():
            yield from _ASCII_WORD.findall(word)
        else:
            yield from (part for part in _INNER_BREAK.split(word) if part)


def _pairs(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(len(run) - 1)]


def _without_possessive(word: str) -> str:
    return word.removesuffix("'s").replace("'", "")


def _stemmer(language: str) -> Callable[[str], str]:
    # A stemmer keeps state while it works, so each thread has its own.
    known: Callable[[str], str] | None = getattr(_stemmers, language, None)
    if known is not None:
        return known
    made: Callable[[str], str] = Stemmer.Stemmer(language).stemWord
    setattr(_stemmers, language, made)
    return made
