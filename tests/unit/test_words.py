"""The word rules: other spellings, endings and scripts are found (hazards 13, 14)."""

from __future__ import annotations

import pytest

from muniment.evidence.query import MAX_TERMS, analyze
from muniment.lexical.indexing import BYTES_PER_TERM, index_text
from muniment.lexical.marks import Mark
from muniment.lexical.words import MAX_WORD_CHARACTERS, asked_words, plain_words, words


def found(stored: str, asked: str) -> bool:
    return set(asked_words(asked)) <= set(words(stored))


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("用户喜欢喝咖啡", "咖啡"),
        ("毎朝コーヒーを飲みます", "コーヒー"),
        ("ผู้ใช้ชอบดื่มกาแฟ", "กาแฟ"),
        ("사용자는 커피를 좋아한다", "커피"),
        ("Die Straße ist lang", "strasse"),
        ("He moved to Hauptstrasse", "HAUPTSTRASSE"),
        ("Живёт в городе Прага", "прага"),
        ("Едет в Прагу", "Прага"),
        ("Two emails came", "email"),
        ("One email came", "emails"),
        ("Meeting at the café", "cafe"),
        ("Łódź is a city", "lodz"),
        ("यह हिन्दी है", "हिन्दी"),
        ("Caroline’s horse", "caroline"),
        ("I said so.Then we left", "then"),
        ("alice+work@example.org wrote", "example.org"),
        ("A family 👩‍👩‍👧 and a flag 🇺🇦", "👩‍👩‍👧 🇺🇦"),
        ("abc\u202edef", "abcdef"),
        ("e\u0301tude", "étude"),
        ("a\x00b", "b"),
        ('" OR * NEAR( a-b ) : ^', "near"),
    ],
)
def test_a_text_is_found_by_another_spelling_of_its_words(stored: str, asked: str) -> None:
    assert found(stored, asked)


def test_combining_marks_do_not_split_an_indic_word() -> None:
    assert words("हिन्दी") == ["हिन्दी"]


def test_cyrillic_short_i_stays_its_own_letter() -> None:
    assert plain_words("мой") != plain_words("мои")


def test_a_lone_surrogate_does_not_make_a_query_fail() -> None:
    assert analyze("tea \ud800 time").terms == analyze("tea time").terms


def test_a_huge_text_is_indexed_and_found_by_its_exact_words() -> None:
    text = "a" * 200_000
    assert found(text, text)
    assert words(text) == ["a" * MAX_WORD_CHARACTERS]


def test_a_query_is_shortened_and_never_refused() -> None:
    question = analyze(" ".join(f"word{number}" for number in range(40_000)))
    assert len(question.terms) == MAX_TERMS


def test_stop_and_question_words_do_not_count_beside_others() -> None:
    assert analyze("When did she go to Prague?").terms == analyze("go Prague").terms


def test_a_query_of_stop_words_alone_asks_for_them() -> None:
    assert len(analyze("the who").terms) == 2


def test_an_english_word_is_not_left_out_for_another_language() -> None:
    assert analyze("hat").terms == analyze("the hat").terms
    assert len(analyze("red hat").terms) == 2


@pytest.mark.parametrize("blank", ["", " \n", "\u200b\u2060", "?!"])
def test_a_text_without_words_has_no_terms(blank: str) -> None:
    assert words(blank) == []
    assert index_text(blank).terms == b""


def test_an_index_is_the_same_for_the_same_text() -> None:
    assert index_text("Tea at noon", name="Ana") == index_text("Tea at noon", name="Ana")


def test_an_index_holds_each_term_once_with_its_count() -> None:
    indexed = index_text("tea tea noon")
    assert len(indexed.terms) == 2 * BYTES_PER_TERM
    assert indexed.length == 3


def test_a_speakers_name_is_found_and_kept_apart_from_the_text() -> None:
    assert len(index_text("tea", name="Ana").terms) == 3 * BYTES_PER_TERM


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Where do you live?", Mark.ASKS_ONLY),
        ("I went home. And you?", Mark.ASKS),
        ("We met yesterday", Mark.TIME),
        ("We met in May", Mark.TIME),
        ("We met two weeks before", Mark.TIME),
        ("We met on the 3rd", Mark.TIME),
        ("I live in Oslo", Mark.PLACE),
        ("I’m glad", Mark.FIRST_PERSON),
        ("I don’t know", Mark.NEGATES),
        ("She painted it", Mark.PAST),
    ],
)
def test_an_utterance_is_marked_with_its_kind(text: str, mark: Mark) -> None:
    assert index_text(text).marks & mark


def test_a_modal_may_is_no_month() -> None:
    assert not index_text("You may go").marks & Mark.TIME
