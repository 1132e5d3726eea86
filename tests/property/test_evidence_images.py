"""An image of an audience is what its rows are, however it came about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.evidence.corpus import Corpus, CorpusRow
from muniment.evidence.eligibility import Filters
from muniment.evidence.query import MAX_TERMS, analyze
from muniment.evidence.score import Scored, score
from muniment.evidence.vectors import ByteVectors, FloatVectors, Vectors, pack_vector
from muniment.lexical.indexing import index_text
from muniment.lexical.words import asked_words, fold, plain_words, words

WORDS = st.sampled_from(("tea", "noon", "kite", "garden", "Oslo"))
TEXTS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
KEYS = st.integers(0, 12)
CHANGES = st.lists(st.one_of(st.tuples(KEYS, TEXTS), st.tuples(KEYS, st.none())), max_size=40)


def row(key: int, text: str) -> CorpusRow:
    session, vector = str(key % 3), pack_vector([key, len(text), 3.0]) if key % 4 else None
    indexed = index_text(text)
    return CorpusRow(key, "message", indexed, float(key), key, session=session, vector=vector)


def asked(corpus: Corpus) -> list[Scored]:
    question = analyze("tea at noon in Oslo")
    return score([corpus], question, Filters(now=0.0, as_of=100.0), embedding=[1.0, 2.0, 0.5])


@pytest.mark.parametrize("form", [FloatVectors, ByteVectors])
@given(changes=CHANGES)
@settings(max_examples=60, deadline=None)
def test_an_image_kept_up_to_date_scores_as_one_built_anew(
    form: type[Vectors], changes: list[tuple[int, str | None]]
) -> None:
    kept, rows = Corpus(form), dict[int, str]()
    for key, text in changes:
        if text is None:
            kept.remove([key])
            rows.pop(key, None)
        else:
            kept.upsert([row(key, text)])
            rows[key] = text
        asked(kept)
    fresh = Corpus(form)
    fresh.upsert(row(key, text) for key, text in rows.items())
    assert asked(kept) == asked(fresh)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(deadline=None)
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    assert set(asked_words(text)) <= set(words(text))


@given(st.text(st.characters(max_codepoint=127), max_size=60))
@settings(deadline=None)
def test_plain_ascii_is_divided_as_any_other_text(text: str) -> None:
    assert plain_words(text) == plain_words(f"{text} \u4e00")[:-1]


@given(st.text(st.characters(), max_size=60))
@settings(deadline=None)
def test_any_text_at_all_can_be_asked(text: str) -> None:
    assert len(analyze(text).terms) <= MAX_TERMS
    assert isinstance(fold(text), str)
