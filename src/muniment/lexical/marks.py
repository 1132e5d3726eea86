"""What kind of utterance a text is, as bit flags that are stored with it.

The flags are read by the ranking: a question is rarely the answer to one, and a question about a
time is answered by a text that names one. The patterns are English; in other languages most
flags stay unset, and the ranking falls back to words and meaning.
"""

from __future__ import annotations

import re
from enum import IntFlag


class Mark(IntFlag):
    """Bits of a row's ``marks``; the numbers are stored and never change their meaning."""

    ASKS = 1 << 0
    TIME = 1 << 1
    PLACE = 1 << 2
    NUMBER = 1 << 3
    FIRST_PERSON = 1 << 4
    SECOND_PERSON = 1 << 5
    ACKNOWLEDGES = 1 << 6
    GREETS = 1 << 7
    REASON = 1 << 8
    FEELING = 1 << 9
    NAMED = 1 << 10
    QUOTES = 1 << 11
    LISTS = 1 << 12
    PLANS = 1 << 13
    PAST = 1 << 14
    EXCLAIMS = 1 << 15
    NEGATES = 1 << 16
    LINKS = 1 << 17
    WE = 1 << 18
    ASKS_ONLY = 1 << 19
    PERSON = 1 << 20
    THANKS = 1 << 21


READ_CHARACTERS = 8_000
"""Marks are read off the beginning of a text: they say what kind it is, not all it holds."""

_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_UNITS = "(?:minute|hour|day|night|week|weekend|month|year|decade|summer|winter|spring|fall|autumn)s?"
_COUNTS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twice|once|couple"

_PATTERNS: tuple[tuple[Mark, str], ...] = (
    (Mark.ASKS, r"[?？؟]"),
    (
        Mark.TIME,
        rf"\b(?:yesterday|today|tonight|tomorrow|ago|{_DAYS}s?|(?:19|20)\d\d|\d{{1,2}}:\d\d"
        rf"|\d{{1,2}} ?[ap]\.?m\b|{_MONTHS.replace('|may|', '|').replace('|mar|', '|')}"
        rf"|(?:in|since|on|of|until|last|next|this|early|late|mid) (?:may|march|{_UNITS})"
        rf"|(?:last|next|this|past|few|couple of|several|every|\d+|{_COUNTS}) {_UNITS}"
        r"|recently|lately|just now|the other day|(?:this|that) morning|\d{1,2}(?:st|nd|rd|th))\b",
    ),
    (
        Mark.PLACE,
        r"\b(?:(?:in|at|to|from|near|around|visit(?:ed|ing)?) (?:the )?(?-i:[A-Z])\w+"
        r"|home|park|beach|city|town|country|museum|school|office|lake|mountains?|street|restaurant"
        r"|cafe|shop|store|gym|hospital|church|center|hotel|forest|island|airport|studio)\b",
    ),
    (Mark.NUMBER, rf"\b(?:\d[\d.,]*|{_COUNTS}|hundreds?|thousands?|several)\b"),
    (Mark.FIRST_PERSON, r"\b(?:i|i'(?:m|ve|d|ll)|my|mine|me|myself)\b"),
    (Mark.SECOND_PERSON, r"\b(?:you|you'(?:re|ve|d|ll)|your|yours|yourself)\b"),
    (Mark.WE, r"\b(?:we|we'(?:re|ve|d|ll)|our|ours|us)\b"),
    (
        Mark.ACKNOWLEDGES,
        r"\A\W*(?:wow|yeah|yep|yes|sure|ok|okay|cool|nice|great|awesome|absolutely|totally|exactly"
        r"|definitely|sounds|that'?s|glad|good|congrats\w*|amazing|so|aw+|oh|haha\w*|lol|agreed)\b",
    ),
    (Mark.GREETS, r"\A\W*(?:hey|hi|hello|good (?:morning|evening|afternoon)|bye|see you|take care)\b"),
    (Mark.THANKS, r"\b(?:thanks|thank you|thx|appreciate)\b"),
    (Mark.REASON, r"\b(?:because|since|so that|in order to|due to|reason|that'?s why|cause)\b"),
    (
        Mark.FEELING,
        r"\b(?:feel(?:s|ing)?|felt|love[ds]?|hate[ds]?|enjoy\w*|happy|sad|proud|excited|nervous|scared"
        r"|grateful|favou?rite|prefer\w*|stressed|calm|peace\w*|inspir\w*)\b",
    ),
    (Mark.NAMED, r"(?<=[a-z,] )(?-i:[A-Z][a-z]+)|(?<=[a-z,] )(?-i:[A-Z]{2,})\b"),
    (Mark.QUOTES, r"[\"“”«»「」]"),
    (Mark.LISTS, r"\w, [^,.!?]+,? (?:and|or) \w"),
    (Mark.PLANS, r"\b(?:going to|gonna|will|plan\w*|want to|hope to|hoping|thinking (?:of|about)|i'll|we'll)\b"),
    (Mark.PAST, r"\b(?:was|were|had|went|got|did|made|took|saw|met|started|finished|bought|\w{3,}ed)\b"),
    (Mark.EXCLAIMS, r"[!！]"),
    (Mark.NEGATES, r"\b(?:not|never|no|cannot|\w+n't)\b"),
    (Mark.LINKS, r"https?://|www\."),
    (
        Mark.PERSON,
        r"\b(?:mom|mother|dad|father|parents?|brother|sister|friends?|wife|husband|partner|son|daughter"
        r"|kids?|children|family|grand\w+|aunt|uncle|cousin|colleague|boss|neighbou?rs?|team)\b",
    ),
    (Mark.ASKS_ONLY, r"\A[^.!?。！？]*[?？؟]\W*\Z"),
)
_COMPILED = tuple((mark, re.compile(pattern, re.IGNORECASE)) for mark, pattern in _PATTERNS)
_APOSTROPHE = str.maketrans({"\u2019": "'"})


def marks_of(text: str) -> int:
    """The flags of ``text`` as one number."""
    beginning = text[:READ_CHARACTERS].translate(_APOSTROPHE)
    marks = Mark(0)
    for mark, pattern in _COMPILED:
        if pattern.search(beginning):
            marks |= mark
    return int(marks)
