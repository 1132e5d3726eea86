"""What kind of utterance a text is, as bit flags that are stored with it.

The flags are read by the ranking: a question is rarely the answer to one, and a question about a
time is answered by a text that names one. The word lists are English; in other languages most
flags stay unset, and the ranking falls back to words and meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntFlag
from functools import reduce
from itertools import pairwise
from operator import or_


class Mark(IntFlag):
    """Bits of a row's ``marks``; the numbers are stored and never change their meaning."""

    ASKS = 1 << 0
    TIME = 1 << 1
    PLACE = 1 << 2
    NUMBER = 1 << 3
    FIRST_PERSON = 1 << 4
    SECOND_PERSON = 1 << 5
    WE = 1 << 6
    ACKNOWLEDGES = 1 << 7
    GREETS = 1 << 8
    THANKS = 1 << 9
    REASON = 1 << 10
    FEELING = 1 << 11
    NAMED = 1 << 12
    QUOTES = 1 << 13
    PLANS = 1 << 14
    PAST = 1 << 15
    EXCLAIMS = 1 << 16
    NEGATES = 1 << 17
    LINKS = 1 << 18
    ASKS_ONLY = 1 << 19
    PERSON = 1 << 20


# As plain numbers: arithmetic on members of an enumeration costs more than finding them.
_TIME, _PLACE, _IS_NAMED = int(Mark.TIME), int(Mark.PLACE), int(Mark.NAMED)
_QUOTES, _EXCLAIMS, _LINKS = int(Mark.QUOTES), int(Mark.EXCLAIMS), int(Mark.LINKS)

READ_CHARACTERS = 8_000
"""Marks are read off the beginning of a text: they say what kind it is, not all it holds."""

_WORDS = {
    Mark.TIME: """yesterday today tonight tomorrow ago recently lately monday tuesday wednesday
        thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
        sundays january february april june july august september october november december
        feb apr jun jul aug sept oct nov dec""",
    Mark.PLACE: """home park beach city town country museum school office lake mountain mountains
        street restaurant cafe shop store gym hospital church center centre hotel forest island
        airport studio downtown abroad""",
    Mark.NUMBER: """one two three four five six seven eight nine ten eleven twelve dozen twice
        hundred hundreds thousand thousands several""",
    Mark.FIRST_PERSON: "i i'm i've i'd i'll im ive my mine me myself",
    Mark.SECOND_PERSON: "you you're you've you'd you'll your yours yourself",
    Mark.WE: "we we're we've we'd we'll our ours us",
    Mark.THANKS: "thanks thank thx appreciate",
    Mark.REASON: "because since reason cause due why",
    Mark.FEELING: """feel feels feeling felt love loves loved hate hated enjoy enjoyed enjoying
        happy sad proud excited nervous scared grateful favorite favourite prefer stressed calm
        peace peaceful inspired inspiring""",
    Mark.PLANS: "gonna going will plan plans planning planned hope hoping i'll we'll",
    Mark.PAST: """was were had went got did made took saw met started finished bought gave found
        joined tried decided moved visited""",
    Mark.NEGATES: "not never no cannot",
    Mark.PERSON: """mom mother dad father parent parents brother sister friend friends wife
        husband partner son daughter kid kids child children family grandma grandpa grandmother
        grandfather aunt uncle cousin colleague colleagues boss neighbor neighbour team""",
}
_OPENINGS = {
    Mark.ACKNOWLEDGES: """wow yeah yep yes sure ok okay cool nice great awesome absolutely totally
        exactly definitely sounds that's glad good congrats congratulations amazing aw aww oh haha
        lol agreed""",
    Mark.GREETS: "hey hi hello bye",
}
_UNIT_COUNTS = """last next this past few of several every each other one two three four five six
    seven eight nine ten early late"""
_BEFORE_UNIT = frozenset(_UNIT_COUNTS.split())
_UNIT_NAMES = """minute hour day night week weekend month year decade summer winter spring fall
    autumn morning evening"""
_UNITS = frozenset(word for unit in _UNIT_NAMES.split() for word in (unit, f"{unit}s"))
_MONTH_PREPOSITIONS = "in since on of until last next this early late mid"
_BEFORE_MONTH = frozenset(_MONTH_PREPOSITIONS.split())
_MONTHS_THAT_ARE_WORDS = frozenset({"may", "march"})
_ORDINAL = re.compile(r"\d{1,2}(?:st|nd|rd|th|am|pm)")
_NAMED = re.compile(r" (?<=[a-z,] )[A-Z][A-Za-z]")  # a literal first: found at memory's speed
_PLACE_PREPOSITIONS = frozenset({"in", "at", "to", "from", "near", "around", "visited", "visiting"})
# What it finds, `_NAMED` finds as well.
_NAMED_PLACE = re.compile(r"\b(?:in|at|to|from|near|around|visited|visiting) (?:the )?[A-Z][a-z]")
_QUESTION_MARKS = ("?", "？", "؟")
_SENTENCE_END = re.compile(r"[.!。！]\s|[.!。！]\Z")


def _by_word(lists: dict[Mark, str]) -> dict[str, int]:
    table: dict[str, int] = {}
    for mark, words in lists.items():
        for word in words.split():
            table[word] = table.get(word, 0) | int(mark)
    return table


_BY_WORD = _by_word(_WORDS)
_BY_OPENING = _by_word(_OPENINGS)

_MAKES_TIME = 1 << 40
_BEFORE_PLACE = 1 << 41
_STORED = _MAKES_TIME - 1
"""What is kept of :func:`word_marks`; the bits above only say where it is worth looking."""


def marks_of(text: str, words: Sequence[str]) -> int:
    """The flags of ``text`` as one number; ``words`` are its folded words."""
    return marks_from(text, words, map(word_marks, words))


def marks_from(text: str, words: Sequence[str], each: Iterable[int]) -> int:
    """:func:`marks_of` where :func:`word_marks` of ``each`` word is known."""
    found = reduce(or_, each, _BY_OPENING.get(words[0], 0) if words else 0)
    if found & _MAKES_TIME and not found & _TIME:
        found |= _of_pairs(words)
    read = text if len(text) <= READ_CHARACTERS else text[:READ_CHARACTERS]
    found |= _of_ascii_signs(read, found) if read.isascii() else _of_signs(read)
    return found & _STORED


def word_marks(word: str) -> int:
    """What one folded word says, wherever it stands, for :func:`marks_from`."""
    marks = _BY_WORD.get(word, 0)
    if word[0].isdigit():
        marks |= _of_number(word)
    elif word.endswith("n't"):
        marks |= int(Mark.NEGATES)
    elif word.endswith("ed") and len(word) > 4:
        marks |= int(Mark.PAST)
    if word in _UNITS or word in _MONTHS_THAT_ARE_WORDS:
        marks |= _MAKES_TIME
    if word.rpartition("'")[2] in _PLACE_PREPOSITIONS:
        marks |= _BEFORE_PLACE
    return marks


def _of_number(word: str) -> int:
    year = len(word) == 4 and word[:2] in ("19", "20") and word.isdigit()
    return int(Mark.NUMBER | Mark.TIME) if year or _ORDINAL.fullmatch(word) else int(Mark.NUMBER)


def _of_pairs(words: Sequence[str]) -> int:
    for one, other in pairwise(words):
        if other in _UNITS and (one in _BEFORE_UNIT or one.isdigit()):
            return _TIME
        if other in _MONTHS_THAT_ARE_WORDS and one in _BEFORE_MONTH:
            return _TIME
    return 0


def _of_ascii_signs(text: str, found: int) -> int:
    marks = _of_signs_of_any_text(text)
    if "?" in text:
        marks |= _asks(text)
    # In ASCII a preposition that the pattern finds is the end of one of the words.
    if marks & _IS_NAMED and found & _BEFORE_PLACE and _NAMED_PLACE.search(text):
        marks |= _PLACE
    return marks


def _of_signs(text: str) -> int:
    marks = _of_signs_of_any_text(text)
    if any(sign in text for sign in _QUESTION_MARKS):
        marks |= _asks(text)
    if "！" in text:
        marks |= _EXCLAIMS
    if "“" in text or "「" in text:
        marks |= _QUOTES
    if marks & _IS_NAMED and _NAMED_PLACE.search(text):
        marks |= _PLACE
    return marks


def _of_signs_of_any_text(text: str) -> int:
    marks = _IS_NAMED if _NAMED.search(text) else 0
    if "!" in text:
        marks |= _EXCLAIMS
    if '"' in text:
        marks |= _QUOTES
    if "://" in text or "www." in text:
        marks |= _LINKS
    return marks


def _asks(text: str) -> int:
    return int(Mark.ASKS) if _SENTENCE_END.search(text) else int(Mark.ASKS | Mark.ASKS_ONLY)
