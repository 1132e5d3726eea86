"""Kinds of things: a question that asks for a kind is answered by the name of a thing.

"Which instruments does she play?" shares no word with "my violin". The kinds are read from
``concepts.txt``, a list made by hand and meant for any conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from muniment.lexical.indexing import term_hash
from muniment.lexical.words import asked_words, plain_words, stem

FILE = "concepts.txt"

MOST_KINDS = 6
"""A question is read as asking for at most so many kinds of things."""


def asked_kinds(words: Sequence[str]) -> tuple[frozenset[int], ...]:
    """For each kind that one of the folded ``words`` asks for, the hashes of all terms that
    name it or one of its things."""
    kinds, by_word = _table()
    found = dict.fromkeys(place for word in words for place in by_word.get(stem(word), ()))
    return tuple(kinds[place] for place in list(found)[:MOST_KINDS])


@cache
def _table() -> tuple[tuple[frozenset[int], ...], dict[str, list[int]]]:
    kinds: list[frozenset[int]] = []
    by_word: dict[str, list[int]] = {}
    text = files("muniment.lexical").joinpath(FILE).read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        asking, _, things = line.partition(":")
        for word in dict.fromkeys(map(stem, plain_words(asking))):
            by_word.setdefault(word, []).append(len(kinds))
        kinds.append(frozenset(map(term_hash, asked_words(f"{asking} {things}"))))
    return tuple(kinds), by_word
