"""Which rows are worth weighing."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.evidence.eligibility import Filters
from muniment.evidence.gathering import gather
from muniment.evidence.query import analyze
from muniment.evidence.shortlist import MOST_CANDIDATES
from muniment.evidence.vectors import pack_vector
from muniment.lexical.indexing import index_text

NOW = 1e6
FAR, NEAR = [0.0, 1.0], [1.0, 0.0]


def row(key: int, text: str, *, kind: str = MESSAGE, **more: Any) -> CorpusRow:
    vector = more.pop("vector", None)
    values = {"at": float(key), "order": key, "session": "s" if kind == MESSAGE else None} | more
    packed = None if vector is None else pack_vector(vector)
    return CorpusRow(key=key, kind=kind, indexed=index_text(text), vector=packed, **values)


def corpus(*rows: CorpusRow) -> Corpus:
    made = Corpus()
    made.upsert(rows)
    return made


def listed(
    text: str,
    *corpora: Corpus,
    embedding: list[float] | None = None,
    around: bool = True,
    filters: Filters | None = None,
) -> list[int]:
    found = gather(
        corpora,
        analyze(text),
        embedding=embedding,
        filters=filters or Filters(NOW),
        around=around,
    )
    return sorted(found.values("keys").tolist()) if len(found) else []


TALK = (
    row(1, "what is the code of the garage?"),
    row(2, "four seven one one"),
    row(3, "thanks"),
    row(4, "rain again today", session="t"),
)


def test_an_answer_that_repeats_no_word_of_its_question_is_listed() -> None:
    assert listed("garage code", corpus(*TALK)) == [1, 2]


def test_what_was_said_just_before_a_word_asked_for_is_listed() -> None:
    assert listed("thanks", corpus(*TALK)) == [2, 3]


def test_a_row_stands_for_itself_where_its_neighbours_do_not_count() -> None:
    assert listed("garage code", corpus(*TALK), around=False) == [1]


def test_a_neighbour_in_another_session_is_none() -> None:
    assert listed("rain", corpus(*TALK)) == [4]


def test_a_question_that_nothing_speaks_of_lists_nothing() -> None:
    assert listed("zebra", corpus(*TALK)) == []


def test_a_row_left_out_by_the_filters_still_counts_as_a_neighbour() -> None:
    assert listed("garage code", corpus(*TALK), filters=Filters(NOW, excluded=[1])) == [2]


@pytest.mark.parametrize("vector", [NEAR, FAR, [-1.0, 0.0]])
def test_whatever_has_an_embedding_is_listed_where_there_is_room(vector: list[float]) -> None:
    rows = corpus(row(1, "kite", vector=vector))
    assert listed("zebra", rows, embedding=NEAR) == [1]
    assert listed("zebra", rows) == []


def test_the_best_of_all_corpora_are_listed_together() -> None:
    many = corpus(*(row(n, "some talk", vector=FAR) for n in range(MOST_CANDIDATES)))
    few = corpus(row(9_001, "a zebra"), row(9_002, "a kite", vector=NEAR, session="t"))
    found = listed("zebra", many, few, embedding=NEAR)
    assert len(found) == MOST_CANDIDATES
    assert {9_001, 9_002} <= set(found)


def test_a_fact_is_listed_before_messages_that_mean_as_much() -> None:
    facts = corpus(*(row(9_000 + n, "a fact", kind="fact", vector=[1.0, 0.5]) for n in range(9)))
    talk = corpus(*(row(n, "talk", vector=[1.0, 0.5]) for n in range(2 * MOST_CANDIDATES)))
    far = corpus(row(8_000, "far", kind="fact", vector=FAR))
    found = listed("zebra", talk, facts, far, embedding=NEAR)
    assert {9_000 + n for n in range(9)} <= set(found)


def test_a_row_without_its_embedding_yet_is_listed_by_its_words() -> None:
    rows = corpus(row(1, "a zebra"), *(row(n, "talk", vector=NEAR) for n in range(2, 1_200)))
    assert 1 in listed("zebra", rows, embedding=NEAR)
