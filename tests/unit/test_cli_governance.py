"""The commands by realm: what they select, say and change, and that bad input changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muniment.cli.app import run

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    monkeypatch.setenv("COLUMNS", "80")

    def called(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return called


def document(call: Call, *arguments: str) -> Any:
    code, out, err = call(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture
def stored(call: Call) -> Call:
    for user, text in (("ana", "Ana drinks sencha."), ("bo", "Bo drinks cocoa.")):
        call("add", text, "--tenant", "acme", "--user", user)
        call("add", text, "--message", "--session", "s", "--tenant", "acme", "--user", user)
    call("add", "Cy drinks rooibos.", "--tenant", "acme-corp", "--user", "cy")
    return call


def test_reindex_counts_the_rows_of_its_realm_and_changes_no_answer(stored: Call) -> None:
    asked = ("recall", "who drinks sencha", "--tenant", "acme", "--user", "ana")
    before = document(stored, *asked)
    assert document(stored, "reindex")["rows"] == 5
    assert document(stored, "reindex", "--tenant", "acme")["rows"] == 4
    assert document(stored, "reindex", "--tenant", "acme", "--user", "ana")["rows"] == 2
    narrow = ("--tenant", "acme", "--user", "ana", "--session", "s")
    assert document(stored, "reindex", *narrow)["rows"] == 1
    assert document(stored, "reindex", "--tenant", "acm")["rows"] == 0
    assert document(stored, *asked) == before
    code, out, err = stored("reindex")
    assert (code, out) == (0, "rebuilt 5 memories and messages\n")
    assert err == "Rebuilding the index ...\n"


def test_reindex_of_a_user_needs_the_tenant(stored: Call) -> None:
    for part in ("--user", "--agent", "--session"):
        code, out, err = stored("reindex", part, "x")
        assert (code, out) == (2, "")
        assert "--tenant" in err
