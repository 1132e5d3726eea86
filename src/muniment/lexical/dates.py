"""Times that a question names, and the spans of time that they stand for.

``2023-05-07``, ``7 May 2023``, ``May 2023``, ``in May``, ``summer 2022``, ``2021`` are read in
several languages, and so are times told from now: yesterday, last week, three months ago, last
Friday. A date without its year stands for each year in question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from muniment.lexical.words import fold, plain_words

Span = tuple[float, float]
"""Seconds since 1970: from the first to before the second."""

MOST_DATES = 4
MOST_YEARS = 10

_MONTH_NAMES = (
    "january jan januar janner enero janvier gennaio janeiro январь января январе 1月",
    "february feb februar febrero fevrier febbraio fevereiro февраль февраля феврале 2月",
    "march mar marz marzo mars marco март марта марте 3月",
    "april apr abril avril aprile апрель апреля апреле 4月",
    "may mai mayo maggio maio май мая мае 5月",
    "june jun juni junio juin giugno junho июнь июня июне 6月",
    "july jul juli julio juillet luglio julho июль июля июле 7月",
    "august aug agosto aout август августа августе 8月",
    "september sep sept septiembre septembre settembre setembro сентябрь сентября сентябре 9月",
    "october oct oktober okt octubre octobre ottobre outubro октябрь октября октябре 10月",
    "november nov noviembre novembre novembro ноябрь ноября ноябре 11月",
    "december dec dezember dez diciembre decembre dicembre dezembro декабрь декабря декабре 12月",
)
_MONTHS = {name: n for n, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_ALSO_WORDS = frozenset({"may", "march", "mar", "mars", "mai", "marco", "jan", "sep", "dec"})
_PREPOSITIONS = """in since during last this of until by before after around on early late mid every
    im seit letzten en desde durante el ultimo depuis dernier a nel в с"""
_BEFORE_A_MONTH = frozenset(_PREPOSITIONS.split())
_LINKS = frozenset({"of", "de", "del", "the"})
_SEASON_NAMES = {
    3: "spring fruhling fruhjahr primavera printemps весной",
    6: "summer sommer verano ete летом",
    9: "autumn fall herbst otono automne осенью",
    12: "winter invierno hiver зимой",
}
_SEASONS = {name: start for start, names in _SEASON_NAMES.items() for name in names.split()}
_LAST_NAMES = "last letzten letzter letztes letzte vergangenen pasado"
_LAST = frozenset(_LAST_NAMES.split())
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMERIC = re.compile(
    r"(?<!\d)((?:19|20)\d\d)\s*[-/年]\s*(\d{1,2})(?:\s*[-/月]\s*(\d{1,2}))?(?!\d)"
    r"|(?<!\d)(\d{1,2})\.\s?(\d{1,2})\.\s?((?:19|20)\d\d)"
)
_EASTERN = re.compile(r"(?<!\d)(\d{1,2})月(?:(\d{1,2})日)?")
_COUNTS = {
    word: number
    for number, words in enumerate(
        (
            "a an one ein einer einem eine un una",
            "two zwei dos deux couple",
            "three drei tres trois few",
            "four vier cuatro quatre",
            "five funf cinco cinq",
            "six sechs seis",
        ),
        1,
    )
    for word in words.split()
}
_UNIT_NAMES = {
    "day": "day days tag tage tagen dia dias jour jours день дня дней",
    "week": "week weeks weekend woche wochen semana semanas semaine semaines неделю недели недель",
    "month": "month months monat monate monaten mes meses mois месяц месяца месяцев",
    "year": "year years jahr jahre jahren ano anos an ans год года лет",
}
_UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
_WEEKDAYS = {
    name: n
    for n, names in enumerate(
        (
            "monday montag lunes lundi понедельник",
            "tuesday dienstag martes mardi вторник",
            "wednesday mittwoch miercoles mercredi среду",
            "thursday donnerstag jueves jeudi четверг",
            "friday freitag viernes vendredi пятницу",
            "saturday samstag sonnabend sabado samedi субботу",
            "sunday sonntag domingo dimanche воскресенье",
        )
    )
    for name in names.split()
}
_ONE_BEFORE = re.compile(
    r"\b(?:last|previous|letzten?|letzter|letztes|vergangenen?|прошлой|прошлом|прошлый)"
    r" (?P<unit>[^\W\d]+)\b|\b(?:la |el )?(?P<unit2>semana|mes|ano) pasad[oa]\b"
    r"|\b(?P<unit3>semaine|mois|annee) derniere?\b"
)
_THIS = re.compile(
    r"\b(?:this|diese[rnms]?|est[ae]|cette|ce|этой|этом) (?P<unit>week|month|year|woche|monat|"
    r"jahr|semana|mes|ano|semaine|mois|неделе|месяце|году)\b"
)
_AGO = re.compile(
    r"\b(?P<n>\w+) (?P<unit>[^\W\d]+) (?:ago|назад)\b"
    r"|\b(?:vor|hace|il y a) (?P<n2>\w+) (?P<unit2>[^\W\d]+)\b"
)
_DAYS_BEFORE = (
    (0, re.compile(r"\b(?:today|heute|hoy|aujourd'hui|сегодня)\b|今天|今日")),
    (1, re.compile(r"\b(?:yesterday|last night|gestern|ayer|hier|вчера)\b|昨天|昨日")),
)
_EASTERN_UNITS = (
    ("week", 1, re.compile("上周|上星期|上个星期|先週")),
    ("week", 0, re.compile("这周|本周|今週")),
    ("month", 1, re.compile("上个月|上月|先月")),
    ("year", 1, re.compile("去年|昨年")),
)
_CASES = {"неделе": "week", "месяце": "month", "году": "year", "annee": "year"}


@dataclass(frozen=True, slots=True)
class Calendar:
    """A date, or what is known of one: ``months`` is how many it covers where no day is named;
    ``latest`` says that the last one before now is meant, not one of every year."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    months: int = 1
    latest: bool = False


@dataclass(frozen=True, slots=True)
class FromNow:
    """``count`` units (day, week, month, year) before the present one; a ``weekday`` (0 Monday)
    is the last such day before today."""

    unit: str
    count: int = 0
    weekday: int | None = None


AskedTime = Calendar | FromNow


def asked_times(text: str) -> tuple[AskedTime, ...]:
    """The times that ``text`` names, at most :data:`MOST_DATES`: the dates, and only where there
    is none the times told from now ("last weekend before April 10" is a date)."""
    folded = fold(text)
    found: list[AskedTime] = [*_numeric(folded), *_named(plain_words(text))]
    if not found:
        found = [*_bare_years(folded)] or [*_from_now(folded)]
    return tuple(dict.fromkeys(found))[:MOST_DATES]


def spans_of(times: Sequence[AskedTime], *, now: float, years: range) -> tuple[Span, ...]:
    """What the times stand for, as of ``now``; a date without a year in each of ``years``."""
    present = datetime.fromtimestamp(now, UTC)
    spans = []
    for time in times:
        if isinstance(time, FromNow):
            spans.append(_told_from(present, time))
        elif time.year is not None:
            spans += _dated(time, time.year)
        else:
            each = [span for year in years[-MOST_YEARS:] for span in _dated(time, year)]
            past = [span for span in each if span[0] <= now]
            spans += past[-1:] if time.latest else each
    return tuple(spans)


def _numeric(text: str) -> Iterator[AskedTime]:
    for found in _NUMERIC.finditer(text):
        year, month, day = found[1] or found[6], found[2] or found[5], found[3] or found[4]
        if 1 <= int(month) <= 12:
            yield Calendar(int(year), int(month), int(day) if day else None)
    if not _NUMERIC.search(text):
        for found in _EASTERN.finditer(text):
            if 1 <= int(found[1]) <= 12:
                yield Calendar(None, int(found[1]), int(found[2]) if found[2] else None)


def _named(words: Sequence[str]) -> Iterator[AskedTime]:
    for place, word in enumerate(words):
        season = _SEASONS.get(word)
        month = _MONTHS.get(word)
        before = words[place - 1] if place else ""
        if month is not None:
            day, year = _around(words, place)
            sure = day is not None or year is not None or before in _BEFORE_A_MONTH
            if sure or word not in _ALSO_WORDS:
                yield Calendar(year, month, day, latest=before in _LAST)
        elif season is not None:
            _, year = _around(words, place)
            if year is not None or before in _LAST:
                yield Calendar(year, season, months=3, latest=before in _LAST)


def _around(words: Sequence[str], place: int) -> tuple[int | None, int | None]:
    """The day just before or after a month's name, and the year after."""
    before = [word for word in words[max(0, place - 3) : place] if word not in _LINKS][-1:]
    after = [word for word in words[place + 1 : place + 4] if word not in _LINKS][:2]
    days = [int(found[1]) for word in before + after[:1] if (found := _DAY.fullmatch(word))]
    years = [int(word) for word in after if _YEAR.fullmatch(word)]
    return next((day for day in days if 1 <= day <= 31), None), next(iter(years), None)


def _bare_years(text: str) -> Iterator[AskedTime]:
    for found in re.finditer(r"(?<![\d.,$€])(?:19|20)\d\d(?![\d.,]\d|\d)", text):
        yield Calendar(int(found.group()))


def _from_now(text: str) -> Iterator[AskedTime]:
    for count, told in _DAYS_BEFORE:
        if told.search(text):
            yield FromNow("day", count)
    for unit, count, told in _EASTERN_UNITS:
        if told.search(text):
            yield FromNow(unit, count)
    for found in _ONE_BEFORE.finditer(text):
        yield from _before(found["unit"] or found["unit2"] or found["unit3"])
    for found in _THIS.finditer(text):
        yield FromNow(_unit(found["unit"]) or "week")
    for found in _AGO.finditer(text):
        number: str = found["n"] or found["n2"]
        length = _unit(found["unit"] or found["unit2"])
        count = int(number[:6]) if number.isdecimal() else _COUNTS.get(number, 0)
        if length and 0 < count <= 1_000:
            yield FromNow(length, count)


def _before(word: str) -> Iterator[AskedTime]:
    unit, weekday = _unit(word), _WEEKDAYS.get(word)
    if weekday is not None:
        yield FromNow("day", weekday=weekday)
    elif unit:
        yield FromNow(unit, 1)


def _unit(word: str) -> str | None:
    return _UNITS.get(word) or _CASES.get(word)


def _dated(time: Calendar, year: int) -> list[Span]:
    try:
        start = datetime(year, time.month or 1, time.day or 1, tzinfo=UTC)
        if time.day:
            return [_span(start, start + timedelta(days=1))]
        return [_span(start, _months_later(start, time.months if time.month else 12))]
    except (ValueError, OverflowError):
        return []


def _told_from(now: datetime, time: FromNow) -> Span:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if time.weekday is not None:
        start = today - timedelta(days=(today.weekday() - time.weekday - 1) % 7 + 1)
        return _span(start, start + timedelta(days=1))
    if time.unit in ("day", "week"):
        days = 1 if time.unit == "day" else 7
        first = today if days == 1 else today - timedelta(days=today.weekday())
        start = first - timedelta(days=days * time.count)
        return _span(start, start + timedelta(days=days))
    months = 1 if time.unit == "month" else 12
    first = today.replace(day=1) if months == 1 else today.replace(month=1, day=1)
    start = _months_later(first, -months * min(time.count, 100))
    return _span(start, _months_later(start, months))


def _months_later(start: datetime, months: int) -> datetime:
    whole = start.year * 12 + start.month - 1 + months
    return start.replace(year=whole // 12, month=whole % 12 + 1)


def _span(start: datetime, end: datetime) -> Span:
    return start.timestamp(), end.timestamp()
