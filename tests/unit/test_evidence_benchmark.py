"""The quality benchmark reads what data sets hold and says what a ranking is worth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.quality.train import examples_of
from muniment.evaluation.dataset import read
from muniment.evaluation.metrics import of_ranking, paired_bootstrap

LOCOMO = [
    {
        "sample_id": "one",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "Hello", "blip_caption": "a red kite"},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Hi"},
            ],
        },
        "qa": [
            {"question": "Kite?", "evidence": ["D1:1"], "category": 4},
            {"question": "Both?", "evidence": ["D1:1; D1:02", "D9:9"], "category": 1},
            {"question": "None?", "evidence": [], "category": 3},
        ],
    }
]


def test_a_locomo_file_is_read_with_its_evidence_repaired_or_dropped(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(LOCOMO))
    (conversation,) = read(path)
    assert [one.text for one in conversation.messages] == ["Hello a red kite", "Hi"]
    assert [one.role for one in conversation.messages] == ["user", "assistant"]
    assert conversation.messages[0].created_at.isoformat() == "2023-05-08T13:56:00+00:00"
    assert conversation.questions[1].evidence == {"D1:1", "D1:2"}
    assert conversation.evidence == {"kept": 1, "repaired": 1, "dropped": 1}


def test_training_sees_a_question_s_candidates_by_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(LOCOMO))
    (conversation,) = read(path)
    names, (kite,) = examples_of(conversation, None, None)
    assert kite.ids == ("D1:1", "D1:2")  # the second stands beside the word asked for
    assert kite.features.shape == (2, len(names))
    assert kite.wanted().tolist() == [1.0, 0.0]


def test_json_lines_are_read_too(tmp_path: Path) -> None:
    message = {"id": "a", "session": "s", "text": "Hi", "created_at": "2024-01-01T00:00:00"}
    asked = {"question": "Who?", "evidence": ["a", "gone"]}
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"id": 1, "messages": [message], "questions": [asked]}) + "\n")
    (conversation,) = read(path)
    assert conversation.questions[0].evidence == {"a"}
    assert conversation.evidence == {"kept": 1, "dropped": 1}


def test_the_figures_of_a_ranking_are_those_of_their_definitions() -> None:
    figures = of_ranking(["x", "a", "y", "b"], {"a", "b"}, [2, 5])
    assert figures["recall@2"] == 0.5
    assert figures["recall@5"] == 1.0
    assert figures["MRR"] == 0.5
    assert figures["NDCG@10"] == pytest.approx(0.6509, abs=1e-4)


def test_a_difference_comes_with_its_interval() -> None:
    found = paired_bootstrap([1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0])
    assert found["difference"] == 0.25
    assert found["low"] <= 0.25 <= found["high"]
