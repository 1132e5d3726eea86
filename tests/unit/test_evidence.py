"""Ranking: what is found, in what order, and what can never matter."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from muniment.evidence.corpus import MESSAGE, Columns, Corpus, CorpusRow
from muniment.evidence.eligibility import Filters
from muniment.evidence.query import analyze
from muniment.evidence.score import LEAST_RELEVANCE, Scored, score
from muniment.evidence.vectors import ByteVectors, pack_vector, unpack_vector
from muniment.evidence.weights import HYBRID, LANES
from muniment.lexical.indexing import index_text

NOW = 1_000.0
AT = Filters(NOW)


def row(
    key: int, text: str, *, name: str | None = None, kind: str = "fact", **more: Any
) -> CorpusRow:
    values = {"at": float(key), "order": key} | more
    return CorpusRow(key=key, kind=kind, indexed=index_text(text, name=name), **values)


def said(key: int, name: str, text: str, session: str = "s", **more: Any) -> CorpusRow:
    return row(key, text, name=name, kind=MESSAGE, session=session, **more)


def corpus(*rows: CorpusRow) -> Corpus:
    made = Corpus()
    made.upsert(rows)
    return made


def ask(
    text: str,
    *corpora: Corpus,
    filters: Filters = AT,
    embedding: list[float] | None = None,
    **more: Any,
) -> list[Scored]:
    return score(corpora, analyze(text), filters, embedding=embedding, **more)


def keys(found: list[Scored]) -> list[int]:
    return [one.key for one in found]


def test_a_rarer_word_counts_for_more() -> None:
    rows = corpus(row(1, "tea noon"), row(2, "tea garden"), row(3, "tea garden"), row(4, "kite"))
    assert keys(ask("tea noon", rows))[0] == 1


def test_a_row_without_a_shared_word_or_embedding_is_not_found() -> None:
    assert keys(ask("tea", corpus(row(1, "tea"), row(2, "kite")))) == [1]


def test_relevance_is_one_for_the_best_and_above_zero_for_the_weakest() -> None:
    found = ask(
        "tea at noon", corpus(row(1, "tea at noon"), row(2, "tea"), row(3, "noon sun light"))
    )
    assert found[0].relevance == 1.0
    assert found[-1].relevance == pytest.approx(LEAST_RELEVANCE)


def test_rows_that_are_alike_all_have_full_relevance_and_the_newest_leads() -> None:
    found = ask("tea", corpus(row(1, "tea"), row(2, "tea")))
    assert keys(found) == [2, 1]
    assert [one.relevance for one in found] == [1.0, 1.0]


def test_every_lane_is_named_in_the_result() -> None:
    (found,) = ask("tea", corpus(row(1, "tea")))
    assert set(found.lanes) == {*LANES, "cosine"}


def test_meaning_finds_what_shares_no_word() -> None:
    rows = corpus(
        row(1, "kite", vector=pack_vector([1, 0])), row(2, "boat", vector=pack_vector([0, 1]))
    )
    assert keys(ask("tea", rows, embedding=[0.1, 0.9])) == [2, 1]


def test_the_cosine_is_told_as_it_is() -> None:
    rows = corpus(row(1, "kite", vector=pack_vector([3, 4])))
    (found,) = ask("tea", rows, embedding=[30, 40])
    assert found.lanes["cosine"] == pytest.approx(1.0, abs=1e-6)


def test_a_row_whose_embedding_is_pending_is_found_by_its_words() -> None:
    rows = corpus(row(1, "kite", vector=pack_vector([1, 0])), row(2, "tea"))
    assert keys(ask("tea", rows, embedding=[0, 1]))[0] == 2


def test_an_embedding_of_another_model_is_left_aside() -> None:
    rows = corpus(row(1, "kite", vector=pack_vector([1, 0])), row(2, "tea"))
    assert keys(ask("tea", rows, embedding=[1, 0, 0])) == [2]


def test_the_speaker_asked_about_leads() -> None:
    rows = corpus(
        said(1, "Bo", "I had tea with Ana"), said(2, "Ana", "I had tea"), said(3, "Bo", "kites fly")
    )
    assert keys(ask("What did Ana have with tea?", rows))[0] == 2


def test_a_question_about_oneself_prefers_the_user() -> None:
    rows = corpus(
        row(1, "tea is fine", kind=MESSAGE, role="assistant", session="s"),
        row(2, "tea is fine", kind=MESSAGE, role="user", session="s", order=0),
    )
    assert keys(ask("Which tea did I drink?", rows))[0] == 2


def test_the_answer_to_a_matching_question_is_lifted() -> None:
    rows = corpus(
        said(1, "Bo", "Which kite is your pick?"),
        said(2, "Ana", "The red kite"),
        said(3, "Ana", "The red kite", session="t"),
    )
    assert keys(ask("kite pick red", rows)).index(2) < keys(ask("kite pick red", rows)).index(3)


def test_a_when_question_prefers_a_text_that_names_a_time() -> None:
    rows = corpus(row(1, "the kite flew on Monday"), row(2, "the kite flew very high"))
    assert keys(ask("When did the kite fly?", rows))[0] == 1


def test_several_corpora_rank_as_one() -> None:
    rows = [row(1, "tea at noon"), row(2, "tea garden"), row(3, "tea noon noon kite")]
    together = ask("tea noon", corpus(*rows))
    apart = ask("tea noon", *(corpus(one) for one in rows))
    assert keys(together) == keys(apart)
    assert [one.relevance for one in together] == [one.relevance for one in apart]


def test_rows_in_corpora_not_passed_change_nothing() -> None:
    mine = corpus(row(1, "tea"), row(2, "noon"))
    before = ask("tea noon", mine)
    corpus(*(row(number, "tea tea") for number in range(50)))
    assert ask("tea noon", mine) == before


def test_a_removed_row_leaves_no_trace_in_the_scores() -> None:
    never = corpus(row(1, "tea noon"), row(2, "tea"), row(3, "noon kite"))
    rows = corpus(row(1, "tea noon"), row(9, "tea noon kite"), row(2, "tea"), row(3, "noon kite"))
    rows.remove([9, 77])
    assert ask("tea noon", rows) == ask("tea noon", never)
    assert len(rows) == 3


def test_a_replaced_row_is_found_by_its_new_words_only() -> None:
    rows = corpus(row(1, "tea"))
    rows.upsert([row(1, "kite")])
    assert ask("tea", rows) == []
    assert keys(ask("kite", rows)) == [1]


def test_scores_are_the_same_after_compaction() -> None:
    vector = pack_vector([1, 2])
    rows = corpus(*(row(number, f"tea w{number}", vector=vector) for number in range(3_000)))
    rows.remove(range(10, 3_000))
    fresh = corpus(*(row(number, f"tea w{number}", vector=vector) for number in range(10)))
    assert rows.size < 3_000
    assert ask("tea w3", rows, embedding=[1, 2]) == ask("tea w3", fresh, embedding=[1, 2])


def test_a_removed_message_is_no_neighbour() -> None:
    rows = corpus(said(1, "Bo", "Which kite?"), said(2, "Ana", "Red kite"))
    rows.remove([1])
    assert ask("kite", rows)[0].lanes["answer"] == 0


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ({"expires_at": NOW}, {}),
        ({"invalid_at": NOW}, {}),
        ({"valid_from": NOW + 1}, {}),
        ({"valid_from": 500.0}, {"as_of": 499.0}),
        ({"invalid_at": 500.0}, {"as_of": 500.0}),
        ({"trust": 0}, {"min_trust": 1}),
        ({"kind": "episode"}, {"kinds": {"fact"}}),
        ({"kind": MESSAGE, "at": 500.0}, {"as_of": 499.0}),
        ({"kind": MESSAGE, "session": "s"}, {"session": "t"}),
        ({"kind": MESSAGE}, {"excluded": {1}}),
        ({"kind": "fact"}, {"kinds": set()}),
    ],
)
def test_a_row_outside_the_filters_is_not_found(
    limits: dict[str, Any], asked: dict[str, Any]
) -> None:
    assert ask("tea", corpus(row(1, "tea", **limits)), filters=Filters(NOW, **asked)) == []


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ({"expires_at": NOW + 1}, {}),
        ({"valid_from": NOW}, {}),
        ({"invalid_at": 500.0}, {"as_of": 499.0}),
        ({"invalid_at": 500.0}, {"include_invalid": True}),
        ({"trust": 1}, {"min_trust": 1}),
        ({"kind": "fact", "at": 500.0}, {"as_of": 499.0}),
        ({"kind": "fact"}, {"session": "t", "excluded": {1}}),
    ],
)
def test_a_row_within_the_filters_is_found(limits: dict[str, Any], asked: dict[str, Any]) -> None:
    assert keys(ask("tea", corpus(row(1, "tea", **limits)), filters=Filters(NOW, **asked))) == [1]


def test_foreign_text_is_found_by_substring_through_the_ranking() -> None:
    rows = corpus(row(1, "用户喜欢喝咖啡"), row(2, "用户喜欢喝茶"))
    assert keys(ask("咖啡", rows)) == [1]


def test_only_so_many_rows_as_asked_for_come_back() -> None:
    rows = corpus(*(row(number, "tea") for number in range(30)))
    assert len(ask("tea", rows, limit=7)) == 7


def test_typed_memories_rank_alike_with_and_without_the_evidence_of_talk() -> None:
    texts = ("likes green tea", "drinks tea with milk at noon", "flies a kite", "noon is for naps")
    rows = corpus(*(row(number, text) for number, text in enumerate(texts)))
    assert keys(ask("tea noon", rows)) == keys(ask("tea noon", rows, weights=HYBRID))


def test_nothing_is_found_in_nothing() -> None:
    assert ask("tea") == []
    assert ask("tea", Corpus(), embedding=[1.0]) == []


def test_a_vector_is_stored_at_unit_length_and_read_back() -> None:
    assert unpack_vector(pack_vector([3, 4])).tolist() == pytest.approx([0.6, 0.8])
    assert unpack_vector(pack_vector([0, 0])).tolist() == [0, 0]
    assert unpack_vector(pack_vector([float("nan"), 2])).tolist() == [0, 1]


def test_a_vector_of_one_byte_a_number_is_as_similar_within_two_thousandths() -> None:
    numbers = np.random.default_rng(7)
    rows = [pack_vector(numbers.standard_normal(384)) for _ in range(300)]
    asked = unpack_vector(rows[0])
    exact, small = Corpus(), Corpus(ByteVectors)
    for image in (exact, small):
        image.upsert(row(key, "tea", vector=vector) for key, vector in enumerate(rows))
    near, nearly = exact.similarity(asked), small.similarity(asked)
    assert near is not None
    assert nearly is not None
    assert float(abs(near - nearly).max()) < 0.002
    assert float(nearly[0]) == pytest.approx(1.0, abs=0.002)


def test_an_image_with_small_vectors_takes_less_than_550_bytes_a_short_row() -> None:
    pick, numbers = random.Random(1), np.random.default_rng(1)
    words = [f"word{number}" for number in range(400)]
    image = Corpus(ByteVectors)
    image.upsert(
        row(key, " ".join(pick.choices(words, k=10)), vector=pack_vector(one))
        for key, one in enumerate(numbers.standard_normal((1_000, 384)))
    )
    assert 384 * len(image) < image.nbytes < 550 * len(image)


def test_many_rows_at_once_are_as_good_as_one_by_one() -> None:
    texts = ["tea at noon", "tea tea garden", "kite", "noon sun"]
    rows = [row(key, text, kind="fact" if key % 2 else "note") for key, text in enumerate(texts)]
    slowly = Corpus()
    for one in rows:
        slowly.upsert([one])
    at_once = Corpus()
    at_once.put(Columns.of(rows))
    assert ask("tea at noon", slowly) == ask("tea at noon", at_once)


def test_a_vector_whose_squares_are_beyond_a_float_is_brought_to_unit_length() -> None:
    assert unpack_vector(pack_vector([3e300, 4e300])).tolist() == pytest.approx([0.6, 0.8])
