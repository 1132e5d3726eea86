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
    assert max(cell_len(line) for line in out.splitlines()) <= width
    assert "relevance" in out
    assert "(as of 2026-02-01)" in out
    assert "0 memories of others" in out
