"""What a question asks for, read off its words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from muniment.lexical.concepts import asked_kinds
from muniment.lexical.dates import AskedTime, asked_times
from muniment.lexical.indexing import name_hash, term_hash
from muniment.lexical.stopwords import is_stop_word
from muniment.lexical.words import asked_terms, plain_words, stem

MAX_TERMS = 32
"""A query is shortened to this many distinct terms, never refused."""

MAX_CHARACTERS = 20_000

_WHEN = re.compile(
    r"\b(?:when|what (?:date|day|time|year|month)|how long|how often|which (?:day|year|month)"
    r"|since when|wann|quand|cuándo|quando|когда)\b|什么时候|何时|いつ|언제|เมื่อไหร่",
    re.IGNORECASE,
)
_ASKED = {
    "where": re.compile(
        r"\b(?:where|wo|où|dónde|где|(?:which|what) (?:city|country|place))\b", re.I
    ),
    "who": re.compile(r"\b(?:who|whom|whose|wer|qui|quién|кто)\b", re.I),
    "number": re.compile(
        r"\b(?:how (?:many|much|old|often|long)|combien|cuánt\w+|сколько)\b", re.I
    ),
    "reason": re.compile(
        r"\b(?:why|how come|what (?:made|motivated|inspired)|warum|почему)\b", re.I
    ),
    "feeling": re.compile(r"\b(?:feel\w*|felt|favou?rite|like|love|enjoy\w*|think)\b", re.I),
    "plan": re.compile(r"\b(?:will|plan\w*|going to|want\w*|would|might)\b", re.I),
    "choice": re.compile(
        r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|would|will)\b", re.I
    ),
}
_FIRST_PERSON = frozenset({"i", "my", "me", "mine", "myself", "im", "ive", "id"})


@dataclass(frozen=True, slots=True)
class Question:
    """A query made ready for scoring.

    ``terms`` are distinct term hashes, at most :data:`MAX_TERMS`; ``names`` the hashes under which
    a speaker of one of the query's words would be stored; ``asks`` what kind of answer is wanted
    (the keys of ``_ASKED``), read as ``marks`` are, mostly in English; ``kinds`` the terms that
    name a thing of each kind asked for (see :mod:`muniment.lexical.concepts`); ``times`` what it
    says of when (see :mod:`muniment.lexical.dates`).
    """

    terms: tuple[int, ...]
    names: tuple[int, ...]
    asks_when: bool
    first_person: bool
    asks: frozenset[str] = frozenset()
    kinds: tuple[frozenset[int], ...] = ()
    times: tuple[AskedTime, ...] = ()


def analyze(text: str) -> Question:
    """Read a query of any length and content; a blank one has no terms."""
    beginning = text[:MAX_CHARACTERS]
    found = plain_words(beginning)
    telling = [word for word in found if not is_stop_word(word)] or found
    terms = dict.fromkeys(term_hash(t) for word in telling for t in asked_terms(word))
    names = dict.fromkeys(name_hash(stem(word)) for word in telling)
    return Question(
        terms=tuple(terms)[:MAX_TERMS],
        names=tuple(names)[:MAX_TERMS],
        asks_when=_WHEN.search(beginning) is not None,
        first_person=any(word.partition("'")[0] in _FIRST_PERSON for word in found),
        asks=frozenset(kind for kind, asked in _ASKED.items() if asked.search(beginning)),
        kinds=asked_kinds(found),
        times=asked_times(beginning),
    )
