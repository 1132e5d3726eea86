"""The fast way of indexing gives what the plain way gives, for text of any script."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.lexical import indexing
from muniment.lexical.indexing import index_text, name_hash, term_hash
from muniment.lexical.marks import marks_of
from muniment.lexical.words import MAX_WORD_CHARACTERS, plain_words, stored_terms, words

FOREIGN = " \u4e00"  # with a word of a script without spaces, no text takes a short way

_SIGNS = (
    "aeinto rsEIN'’‘“”–—…_.,;:!?？！。\"「」12 90 áéüßØжйЖ咖啡コแมक्षि"
    "😀👩\u200b\u200d\u0301\ufe0f\x00\n·\u00ad"
)
_WORDS = """in at to visited near The Paris I'm don't last may March 2020 3rd week days one two's
    x'in _in in_ a.b e.g. www. http://x Is naïve café’s 用户喜欢喝咖啡 กาแฟ прагу Straße
    1,000 $5 it‘s — “ok” ... ? ! " wanted"""
TEXTS = st.lists(
    st.one_of(
        st.text(st.sampled_from(_SIGNS), max_size=30),
        st.lists(st.sampled_from(_WORDS.split()), max_size=12).map(" ".join),
        st.text(max_size=20),
    ),
    max_size=4,
).map("".join)


def packed_plainly(text: str, name: str | None) -> tuple[bytes, int]:
    folded = plain_words(text + FOREIGN)[:-1]
    counts = Counter(term_hash(term) for word in folded for term in stored_terms(word))
    length = counts.total()
    for word in words(name or ""):
        counts.update((term_hash(word), name_hash(word)))
    rows = sorted(counts.items())
    hashes = b"".join(struct.pack("<Q", term) for term, _ in rows)
    return hashes + b"".join(struct.pack("<H", min(n, 65_535)) for _, n in rows), length


@given(TEXTS, st.none() | st.text(max_size=8))
@example("tea " * 70_000, None)
@settings(deadline=None)
def test_terms_are_those_of_each_word_counted(text: str, name: str | None) -> None:
    indexed = index_text(text, name=name)
    assert (indexed.terms, indexed.length) == packed_plainly(text, name)


@given(TEXTS)
@example("We went to Paris in May")
@example("Is it in Paris? I think so. Yes!")
@settings(deadline=None)
def test_marks_are_the_same_whichever_way_a_text_goes(text: str) -> None:
    folded = plain_words(text)
    long_way = marks_of(text + FOREIGN, [*folded, FOREIGN.strip()])
    assert index_text(text).marks == marks_of(text, folded) == long_way


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_MOST_KNOWN", 8)


@pytest.mark.usefixtures("small_table")
def test_the_table_of_known_words_is_bounded_and_answers_stay_the_same() -> None:
    texts = [f"word{n} other{n} tea" for n in range(50)] + ["x" * (MAX_WORD_CHARACTERS + 1)]
    assert [index_text(text) for text in texts] == [index_text(text) for text in texts]
    indexing._HASHES.clear()
    indexing._MARKS.clear()
    for text in texts:
        index_text(text)
    for known in (indexing._HASHES, indexing._MARKS):
        assert 0 < len(known) <= 8
        assert all(len(word) <= MAX_WORD_CHARACTERS for word in known)
