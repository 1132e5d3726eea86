"""`muniment demo`: the main job on the shipped history, by words alone to be quick."""

from __future__ import annotations

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from muniment.cli.app import run
from tests.doubles.openai_server import OpenAIServer, text


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def played(away: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["demo", "--json"]) == 0
    assert list(away.iterdir()) == []
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_the_demo_recalls_isolates_remembers_the_past_restarts_and_erases(
    played: dict[str, Any],
) -> None:
    asked = [each for each in played["questions"] if each["expected"]]
    assert sum(bool(each["ranks"]) for each in asked) >= 0.7 * len(asked)
    assert all(each["foreign"] == 0 for each in played["questions"])
    for attempt in played["isolation"]["attempts"]:
        assert attempt["stolen"] == 0
        assert attempt["found_by_id"] is False
    assert played["restart"]["same"] is True
    assert played["erasure"]["messages"] > 0
    assert played["erasure"]["left"] == 0
    assert played["erasure"]["others"] > 0
    assert played["erasure"]["receipt"].startswith("muniment-erasure:")
    assert played["erasure"]["verified"] is True
    assert played["erasure"]["records"] > 0
    assert "model" not in played


def test_the_demo_shows_what_was_believed_before_and_a_chain_without_gaps(
    played: dict[str, Any],
) -> None:
    city = [each for each in played["questions"] if each["question"].startswith("Which city")]
    now, then = (
        {memory["content"] for memory in each["recalled"] if memory["memory_type"] == "fact"}
        for each in city
    )
    assert "Ana lives in Ghent, near the Coupure." in now - then
    assert "Ana lives in Porto." in then - now
    for changed in played["history"]:
        chain = changed["chain"]
        assert len(chain) > 1
        for older, newer in pairwise(chain):
            assert older["invalid_at"] == newer["valid_from"]
        assert chain[-1]["invalid_at"] is None


@pytest.mark.parametrize("width", [80, 120])
def test_the_demo_is_readable_at_common_widths_and_plain_where_no_terminal_is(
    away: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["demo", "--top", "1"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    receipt = [line for line in out.splitlines() if "muniment-erasure:" in line]
    assert len(receipt) == 1, "whole, to be copied"
    assert max(cell_len(line) for line in out.splitlines() if line not in receipt) <= width
    assert "the log is sound and holds it" in " ".join(out.split())
    assert "relevance" in out
    assert "(as of 2026-02-01)" in out
    assert "0 memories of others" in out


def test_with_a_model_a_turn_is_extracted_summarized_and_answered(
    away: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = {
        "content": "Ana keeps bees.",
        "memory_type": "fact",
        "scope": "user",
        "importance": 0.9,
        "entities": [],
        "replaces": None,
    }
    condensed = json.dumps({"query": "Where does Ana live?", "wanted_types": []})
    with OpenAIServer.running() as server:
        monkeypatch.setenv("MUNIMENT_MODEL", "double")
        monkeypatch.setenv("MUNIMENT_MODEL_BASE_URL", server.url)
        replies = (json.dumps({"facts": [fact]}), "They spoke of bees.", condensed, "In Ghent.")
        server.queue(*map(text, replies))
        assert run(["demo", "--json"]) == 0
        played = json.loads(capsys.readouterr().out)["model"]
        assert [each["content"] for each in played["extracted"]] == ["Ana keeps bees."]
        assert played["extracted"][0]["trust"] == "model"
        assert played["summary"] == "They spoke of bees."
        assert (played["answer"], played["problem"]) == ("In Ghent.", None)
        prompt = server.requests[-1].prompt
        assert "They spoke of bees." in prompt
        assert "Ghent" in prompt


def test_a_model_that_is_not_there_costs_the_demo_its_answer_alone(
    away: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_MODEL", "double")
    monkeypatch.setenv("MUNIMENT_MODEL_BASE_URL", "http://127.0.0.1:9/v1")
    assert run(["demo"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Answer" in out
    assert "none (" in out
    assert "the log is sound and holds it" in out
