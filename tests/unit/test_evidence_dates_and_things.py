"""Evidence from dates that a question names, and from things of the kind that it asks for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.evidence.eligibility import Filters
from muniment.evidence.query import analyze
from muniment.evidence.score import score
from muniment.lexical.concepts import asked_kinds
from muniment.lexical.dates import asked_times, spans_of
from muniment.lexical.indexing import index_text, term_hash
from muniment.lexical.words import stem

MONDAY = datetime(2026, 11, 30, 9, tzinfo=UTC).timestamp()


def days(text: str, years: range = range(2022, 2024)) -> list[tuple[str, str]]:
    spans = spans_of(asked_times(text), now=MONDAY, years=years)
    return [(_day(first), _day(last)) for first, last in spans]


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


@pytest.mark.parametrize(
    ("asked", "first", "end"),
    [
        ("What did I paint in July 2023?", "2023-07-01", "2023-08-01"),
        ("Where was I on 1 May, 2022?", "2022-05-01", "2022-05-02"),
        ("on October 13th, 2023", "2023-10-13", "2023-10-14"),
        ("on 2023-05-07", "2023-05-07", "2023-05-08"),
        ("in December 2021", "2021-12-01", "2022-01-01"),
        ("in summer 2021", "2021-06-01", "2021-09-01"),
        ("what happened in 2019?", "2019-01-01", "2020-01-01"),
        ("Wo war ich am 7. Mai 2023?", "2023-05-07", "2023-05-08"),
        ("am 7.5.2023", "2023-05-07", "2023-05-08"),
        ("el 3 de marzo de 2022", "2022-03-03", "2022-03-04"),
        ("Что было в мае 2022?", "2022-05-01", "2022-06-01"),
        ("2023年5月7日去了哪里?", "2023-05-07", "2023-05-08"),
        ("what did I say yesterday?", "2026-11-29", "2026-11-30"),
        ("What did I buy last week?", "2026-11-23", "2026-11-30"),
        ("three months ago", "2026-08-01", "2026-09-01"),
        ("last Friday", "2026-11-27", "2026-11-28"),
        ("this year", "2026-01-01", "2027-01-01"),
        ("vor drei Wochen", "2026-11-09", "2026-11-16"),
        ("la semana pasada", "2026-11-23", "2026-11-30"),
        ("上周我们去了哪里?", "2026-11-23", "2026-11-30"),
    ],
)
def test_a_time_in_a_question_stands_for_its_days(asked: str, first: str, end: str) -> None:
    assert days(asked) == [(first, end)]


def test_a_date_without_its_year_is_one_of_each_year_unless_the_last_is_meant() -> None:
    assert days("in May") == [("2022-05-01", "2022-06-01"), ("2023-05-01", "2023-06-01")]
    assert days("last May") == [("2023-05-01", "2023-06-01")]


def test_a_time_told_from_a_date_is_not_told_from_now() -> None:
    assert days("last weekend before April 10, 2023") == [("2023-04-10", "2023-04-11")]


@pytest.mark.parametrize(
    "asked", ["What may I do?", "We march on", "on 31 February 2023", "", "a" * 9_999]
)
def test_what_is_no_date_is_read_as_none(asked: str) -> None:
    assert days(asked) == []


def test_any_count_of_units_is_survived() -> None:
    assert days("99999999999 years ago") == []
    assert days("9" * 9_999 + " days ago") == []
    assert len(days("999 years ago")) == 1


def test_a_kind_is_asked_for_by_any_of_its_words_and_answered_by_its_things() -> None:
    (kind, *_) = asked_kinds(["instruments"])
    assert {term_hash(stem("violin")), term_hash(stem("instrument"))} <= kind
    assert asked_kinds(["xyzzy"]) == ()


def told(*texts: str, days_apart: float = 31.0) -> Corpus:
    made = Corpus()
    start = datetime(2023, 5, 1, 12, tzinfo=UTC).timestamp()
    made.upsert(
        CorpusRow(
            key=place,
            kind=MESSAGE,
            indexed=index_text(text, name="Ana"),
            at=start + place * days_apart * 86_400,
            order=place,
            session=str(place),
        )
        for place, text in enumerate(texts)
    )
    return made


def test_a_thing_of_the_kind_asked_for_is_found_without_a_word_in_common() -> None:
    corpus = told("I moved house again.", "My violin needs new strings.", "The bus was late.")
    (best, *_) = score(
        [corpus], analyze("Which instruments are there?"), Filters(MONDAY), embedding=None
    )
    assert best.key == 1


def test_of_two_alike_the_one_told_in_the_month_asked_for_comes_first() -> None:
    corpus = told("I baked a cake.", "I baked a cake.", "I baked a cake.")
    for month, place in (("May", 0), ("June", 1), ("July", 2)):
        asked = analyze(f"What did Ana bake at the start of {month} 2023?")
        (best, *_) = score([corpus], asked, Filters(MONDAY), embedding=None)
        assert best.key == place
