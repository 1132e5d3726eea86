"""Every command asked by the wrong owner: nothing is seen, told or changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muniment.cli.app import run

Call = Callable[..., tuple[int, str, str]]

ANA = ("--tenant", "acme", "--user", "ana")
OTHERS = [
    ("--tenant", "acme", "--user", "bo"),
    ("--tenant", "acme-corp", "--user", "ana"),
    ("--tenant", "acm", "--user", "eana"),
    ("--tenant", "ACME", "--user", "ana"),
    (),
]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")

    def called(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return called


@pytest.fixture
def memory_id(call: Call) -> str:
    _, out, _ = call("add", "Ana keeps a red kayak in Porto.", *ANA, "--json")
    call("add", "My kayak is red.", "--message", "--session", "boats", *ANA)
    call("sessions", "rename", "boats", "Kayaks", *ANA)
    stored: dict[str, Any] = json.loads(out)
    return str(stored["memory_id"])


def everything_of_ana(call: Call, memory_id: str) -> list[str]:
    asked = [
        ("history", memory_id),
        ("search", "kayak"),
        ("sessions", "list"),
        ("sessions", "show", "boats"),
    ]
    return [call(*arguments, *ANA, "--json")[1] for arguments in asked]


@pytest.mark.parametrize("other", OTHERS)
def test_reading_commands_find_nothing_of_another_owner(
    call: Call, memory_id: str, other: tuple[str, ...]
) -> None:
    assert call("search", "kayak", *other, "--json")[1].strip() == "[]"
    assert call("recall", "red kayak", "--explain", *other, "--json")[1].strip() == "[]"
    listed = json.loads(call("sessions", "list", *other, "--json")[1])
    assert listed == {"sessions": [], "next_cursor": None}
    given = json.loads(call("context", "red kayak", "--session", "boats", *other, "--json")[1])
    assert given["messages"] == given["recalled"] == []
    assert given["summary"] is None


@pytest.mark.parametrize("other", OTHERS)
def test_naming_what_is_another_owners_answers_as_if_it_did_not_exist(
    call: Call, memory_id: str, other: tuple[str, ...]
) -> None:
    before = everything_of_ana(call, memory_id)
    pairs = [
        (("history", memory_id), ("history", "mem_none")),
        (("sessions", "show", "boats"), ("sessions", "show", "none")),
        (("sessions", "rename", "boats", "Mine"), ("sessions", "rename", "none", "Mine")),
        (("sessions", "delete", "boats", "--yes"), ("sessions", "delete", "none", "--yes")),
        (("add", "x", "--replaces", memory_id), ("add", "x", "--replaces", "mem_none")),
    ]
    for real, made_up in pairs:
        assert call(*real, *other) == call(*made_up, *other)
        assert call(*real, *other)[0] == 1
    assert everything_of_ana(call, memory_id) == before


def test_the_same_session_name_of_another_user_is_another_session(
    call: Call, memory_id: str
) -> None:
    bo = OTHERS[0]
    before = everything_of_ana(call, memory_id)
    call("add", "Is anybody here?", "--message", "--session", "boats", *bo)
    shown = json.loads(call("sessions", "show", "boats", *bo, "--json")[1])
    assert [message["content"] for message in shown["messages"]] == ["Is anybody here?"]
    assert shown["title"] is None
    call("sessions", "delete", "boats", "--yes", *bo)
    assert everything_of_ana(call, memory_id) == before


@pytest.mark.parametrize("other", OTHERS)
def test_chats_imported_by_another_owner_add_to_no_session_of_anas(
    call: Call, memory_id: str, other: tuple[str, ...], tmp_path: Path
) -> None:
    message = {"role": "user", "content": "A tuba.", "created_at": "2026-01-02T03:04:05Z"}
    (tmp_path / "lines").write_text(json.dumps({**message, "session_id": "boats", "title": "Mine"}))
    before = everything_of_ana(call, memory_id)
    code, out, _ = call("import-chats", "lines", *other, "--json")
    assert (code, json.loads(out)["stored"]) == (0, 1)
    assert everything_of_ana(call, memory_id) == before
    assert "tuba" not in call("recall", "tuba", *ANA, "--json")[1]


@pytest.mark.parametrize("other", [other for other in OTHERS if other])
def test_governing_another_owner_counts_and_changes_nothing_of_anas(
    call: Call, memory_id: str, other: tuple[str, ...]
) -> None:
    before = everything_of_ana(call, memory_id)
    used = json.loads(call("usage", *other, "--json")[1])
    assert (used["entries"], used["stored_tokens"]) == (0, 0)
    assert json.loads(call("reindex", *other, "--json")[1]) == {"rows": 0}
    assert json.loads(call("sweep", *other, "--yes", "--json")[1]) == {"swept": 0}
    gone = json.loads(call("erase", *other, "--yes", "--json")[1])
    assert {name: gone[name] for name in ("entries", "derived", "sessions", "messages")} == {
        "entries": 0,
        "derived": 0,
        "sessions": 0,
        "messages": 0,
    }
    assert everything_of_ana(call, memory_id) == before


@pytest.mark.parametrize("other", [other for other in OTHERS if other])
def test_an_export_holds_and_an_import_adds_nothing_of_anas(
    call: Call, memory_id: str, other: tuple[str, ...]
) -> None:
    before = everything_of_ana(call, memory_id)
    assert json.loads(call("export", *other, "--json")[1]) == {"count": 0, "entries": []}
    assert "kayak" not in call("export", *other)[1]
    assert call("export", "anas", *ANA)[0] == 0
    assert call("import", "anas", *other)[0] == 2, "somebody else's file is not mine"
    assert json.loads(call("export", *other, "--json")[1])["count"] == 0
    assert everything_of_ana(call, memory_id) == before


def test_the_same_answer_is_given_for_an_owner_that_is_not_there(
    call: Call, memory_id: str
) -> None:
    for command in (("usage",), ("erase", "--yes"), ("sweep", "--yes"), ("reindex",)):
        other = call(*command, "--tenant", "acme-corp", "--json")
        assert other == call(*command, "--tenant", "nobody", "--json")
