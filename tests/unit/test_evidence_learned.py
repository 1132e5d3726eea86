"""The learned ranking: complete, explained, and neutral where it knows nothing."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest

from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.evidence.eligibility import Filters
from muniment.evidence.gathering import gather
from muniment.evidence.model import FILE, LinearModel, learned
from muniment.evidence.query import analyze
from muniment.evidence.score import score
from muniment.evidence.vectors import pack_vector
from muniment.evidence.weights import EVIDENCE, HYBRID, LEARNED
from muniment.lexical.indexing import index_text

AT = Filters(now=9.0)
TALK = (
    ("Bo", "Hey Ana! Which instrument do you play these days?"),
    ("Ana", "I took up the violin last spring, and I practise every day."),
    ("Bo", "Wow, the violin! Great."),
    ("Ana", "My sister Kim plays the cello in Oslo."),
)


def talk(kind: str = MESSAGE, *, vectors: bool = False) -> Corpus:
    made = Corpus()
    made.upsert(
        CorpusRow(
            key=place,
            kind=kind,
            indexed=index_text(text, name=name),
            at=float(place),
            order=place,
            session="s" if kind == MESSAGE else None,
            vector=pack_vector([1.0, place]) if vectors else None,
        )
        for place, (name, text) in enumerate(TALK)
    )
    return made


@pytest.mark.parametrize("vectors", [False, True])
def test_every_feature_of_the_shipped_model_is_computed(vectors: bool) -> None:
    embedding = [1.0, 0.5] if vectors else None
    found = gather([talk(vectors=vectors)], analyze("violin"), embedding=embedding, filters=AT)
    computed = [name for names, _ in found.features() for name in names]
    assert list(learned(meaning=vectors).names) == computed


def test_the_shipped_model_says_where_it_comes_from() -> None:
    written = json.loads(files("muniment.evidence").joinpath(FILE).read_text(encoding="utf-8"))
    assert {"made by", "data", "penalty", "cross-validated"} <= set(written["provenance"])


def test_an_answer_is_ranked_above_the_question_and_its_echo() -> None:
    found = score([talk()], analyze("When did Ana start the violin?"), AT, embedding=None)
    assert found[0].key == 1


def test_what_each_group_of_features_added_is_told_by_name() -> None:
    (found, *_) = score([talk()], analyze("Ana violin"), AT, embedding=None, weights=LEARNED)
    assert {"learned:words", "learned:kind", "learned:speaker"} <= set(found.lanes)


def test_plain_hybrid_is_one_argument_away() -> None:
    (found, *_) = score([talk()], analyze("Ana violin"), AT, embedding=None, weights=HYBRID)
    assert not any(lane.startswith("learned:") for lane in found.lanes)


def test_typed_memories_alone_are_ranked_by_the_round_weights() -> None:
    asked = analyze("When did Ana start the violin?")
    usual = score([talk("fact")], asked, AT, embedding=None, weights=LEARNED)
    assert usual == score([talk("fact")], asked, AT, embedding=None, weights=EVIDENCE)


def test_what_only_messages_have_counts_for_a_typed_memory_as_in_the_strongest_messages() -> None:
    model = LinearModel(("words:own", "kind:length"), *map(np.array, ([0, 0], [1, 1], [1, 1])))
    blocks = [
        (("words:own", "kind:length"), np.array([[3.0, 1.0, 2.0], [0.5, 0.7, 9.0]])),
    ]
    messages, every = np.array([True, True, False]), np.full(3, True)
    totals = model.totals(blocks, messages, every)
    assert totals.tolist() == pytest.approx([3.5, 1.7, 2.0 + 0.6])
    assert model.by_lane(blocks, messages, every, totals)["learned:kind"][2] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("found", "mean"), [([True, False, True], 0.5), ([False, False, True], 0.6)]
)
def test_messages_that_only_stand_beside_a_word_say_nothing_of_typed_memories(
    found: list[bool], mean: float
) -> None:
    model = LinearModel(("words:own", "kind:length"), *map(np.array, ([0, 0], [1, 1], [1, 1])))
    blocks = [(("words:own", "kind:length"), np.array([[3.0, 1.0, 2.0], [0.5, 0.7, 9.0]]))]
    totals = model.totals(blocks, np.array([True, True, False]), np.array(found))
    assert totals[2] == pytest.approx(2.0 + mean)


def test_a_typed_memory_that_answers_is_found_among_messages() -> None:
    memory = Corpus()
    memory.upsert([CorpusRow(7, "fact", index_text("Ana plays the violin"), 5.0, 1)])
    found = score([memory, talk()], analyze("Does Ana play the violin?"), AT, embedding=None)
    assert (0, 7) in [(one.corpus_index, one.key) for one in found[:2]]


def test_relevance_lies_above_zero_and_the_best_has_one() -> None:
    found = score([talk(vectors=True)], analyze("violin"), AT, embedding=[0.0, 1.0])
    assert found[0].relevance == 1.0
    assert all(0 < one.relevance <= 1 for one in found)


def test_of_a_fact_and_a_message_that_say_the_same_the_fact_comes_first() -> None:
    memory, spoken = Corpus(), Corpus()
    text = index_text("Ana plays the violin")
    memory.upsert([CorpusRow(7, "fact", text, 5.0, 1)])
    spoken.upsert([CorpusRow(8, MESSAGE, text, 5.0, 1, session="s")])
    found = score([spoken, memory], analyze("Does Ana play the violin?"), AT, embedding=None)
    assert [one.key for one in found] == [7, 8]
    assert found[0].lanes["learned:distilled"] > found[1].lanes["learned:distilled"] == 0


def test_relevance_is_the_odds_to_the_best_so_that_a_factor_of_two_lifts_only_near_rows() -> None:
    found = score([talk()], analyze("Where in Oslo does Kim play the cello?"), AT, embedding=None)
    assert found[0].key == 3
    assert all(2 * one.relevance < 1 for one in found[1:])
