"""`muniment bench quality`: recall measured on one's own questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muniment.cli.app import run
from muniment.evaluation.dataset import read
from muniment.evaluation.product_path import Setup
from muniment.evaluation.stability import stability

TYPED = Path(__file__).parents[2] / "benchmarks" / "quality" / "data" / "typed.jsonl"


def said(number: int, text: str) -> dict[str, str]:
    return {
        "id": f"m{number}",
        "session": "one",
        "name": "Ana",
        "text": text,
        "created_at": f"2024-01-01T10:0{number}:00",
    }


LINE: dict[str, Any] = {
    "id": "talk",
    "messages": [said(0, "My violin needs strings."), said(1, "The bus was late.")],
    "memories": [
        {"id": "f", "type": "fact", "text": "Ana lives in Graz.", "created_at": "2023-01-01"}
    ],
    "questions": [
        {"question": "What about the violin?", "evidence": ["m0"], "category": "things"},
        {"question": "Where does Ana live?", "evidence": ["f"]},
        {"question": "Who likes zebras?", "evidence": ["gone"]},
    ],
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(LINE) + "\n", encoding="utf-8")
    return path


def test_figures_are_told_by_category_and_each_question_in_a_file(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = file.with_name("outcome.jsonl")
    arguments = ["--embedder", "none", "--json", "--questions", str(outcome)]
    assert run(["bench", "quality", str(file), *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {name: part["questions"] for name, part in document["figures"].items()} == {
        "all": 2,
        "things": 1,
        "other": 1,
    }
    assert document["figures"]["all"]["recall@10"] == 1.0
    assert document["evidence"] == {"kept": 2, "repaired": 0, "dropped": 1}
    asked = [json.loads(line) for line in outcome.read_text("utf-8").splitlines()]
    assert [one["question"] for one in asked] == [
        "What about the violin?",
        "Where does Ana live?",
    ]
    assert asked[0]["recalled"][0] == "m0"
    assert asked[0]["missed"] == []
    assert sorted(path.name for path in file.parent.iterdir()) == ["outcome.jsonl", "set.jsonl"]


def test_the_table_is_for_people(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--embedder", "none", "--ranking", "hybrid", "--at-the-end"]
    assert run(["bench", "quality", str(file), *options]) == 0
    out = capsys.readouterr().out
    assert "recall@10" in out
    assert "things" in out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "line 1: is not JSON"),
        ('{"id": 1, "questions": [{"evidence": []}]}', "line 1: question: is missing"),
        ('{"id": 1, "questions": 5}', "line 1: is not in a known form"),
        ('{"id": 1, "questions": []}', "FILE: holds no question with evidence"),
        ("[1]", "conversation 0: is not in a known form"),
        ("", "FILE: holds no question with evidence"),
    ],
)
def test_a_file_that_is_no_question_set_is_refused_in_one_line(
    file: Path, capsys: pytest.CaptureFixture[str], content: str, complaint: str
) -> None:
    file.write_text(content, encoding="utf-8")
    assert run(["bench", "quality", str(file)]) != 0
    assert capsys.readouterr().err.strip().endswith(complaint)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--ranking", "best"], "--ranking: must be one of learned, evidence, hybrid"),
        (["--embedder", "big"], "--embedder: must be one of auto, local, none"),
    ],
)
def test_an_unknown_choice_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], options: list[str], complaint: str
) -> None:
    assert run(["bench", "quality", str(file), *options]) != 0
    assert complaint in capsys.readouterr().err


def test_a_file_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bench", "quality", str(tmp_path / "none.jsonl")]) != 0
    assert "FILE: No such file" in capsys.readouterr().err


async def test_recall_is_the_same_beside_other_tenants_after_a_restart_and_a_reindex() -> None:
    scene = read(TYPED)[0]
    kept = await stability(scene, Setup(embedder=None, at_the_end=True), tenants=20)
    assert kept.questions == len(scene.questions)
    assert kept.is_the_same()


@pytest.mark.parametrize("half", ["choose", "held out"])
async def test_facts_among_messages_are_recalled_no_worse_than_by_the_plain_hybrid(
    half: str,
) -> None:
    from muniment.evaluation.product_path import rankings
    from muniment.evaluation.report import by_category, measure

    lines = TYPED.read_text("utf-8").splitlines()
    splits = [json.loads(line)["split"] for line in lines]
    scenes = [one for one, split in zip(read(TYPED), splits, strict=True) if split == half]
    figures = {}
    for ranking in ("learned", "hybrid"):
        setup = Setup(embedder=None, ranking=ranking, at_the_end=True)
        found = [await rankings(one, setup, limit=6) for one in scenes]
        figures[ranking] = by_category(measure(scenes, found, [6]))["all"]
    assert figures["learned"]["recall@6"] >= figures["hybrid"]["recall@6"]
    assert figures["learned"]["MRR"] >= figures["hybrid"]["MRR"]
