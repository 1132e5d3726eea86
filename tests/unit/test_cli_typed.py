"""What was typed and cannot be used is named as it was typed, with the problem and the range."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.cli.app import run

Refused = Callable[..., str]


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")

    def told(*arguments: str) -> str:
        assert run(arguments) == 2
        assert list(tmp_path.iterdir()) == []
        return capsys.readouterr().err.removeprefix("muniment: ").strip()

    return told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("add", "x", "--scope", "session"), "--session: is needed for --scope session"),
        (("add", "x", "--scope", "project"), "--project: is needed for --scope project"),
        (("add", "x", "--replaces", ""), "--replaces: must not be blank"),
        (
            ("add", "x", "--role", "assistant"),
            "--role: says something of a message: give --message too",
        ),
        (
            ("add", "x", "--message", "--session", "s", "--type", "fact"),
            "--type: says something of a memory, and --message stores none",
        ),
        (("add", "x", "--tenant", ""), "--tenant: must not be blank"),
        (("add", "x\0y"), "TEXT: must not hold a NUL character"),
        (("context", "x"), "--session: is needed, the id of a conversation"),
        (
            ("usage", "--period", "today", "--url", "memory://"),
            "--period: must be a UTC day, YYYY-MM-DD",
        ),
        (("export", ".", "--url", "memory://"), "FILE: is a folder: name a new file in it"),
        (("migrate", "--partitions", "4"), "--partitions: is for PostgreSQL alone"),
        (
            ("migrate", "--url", "memory://"),
            "--url: keeps nothing, so there is no schema to migrate",
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_named(
    refused: Refused, arguments: tuple[str, ...], complaint: str
) -> None:
    assert refused(*arguments) == complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("add", "x", "--importance", "2"), "--importance: must be a number from 0 to 1"),
        (("add", "x", "--importance", "much"), "--importance: must be a number from 0 to 1"),
        (("search", "x", "--limit", "0"), "--limit: must be a whole number from 1 to 1000"),
        (("serve", "--port", "http"), "--port: must be a whole number from 0 to 65535"),
        (
            ("audit", "verify", "--expected-count", "-1"),
            "--expected-count: must be a whole number of at least 0",
        ),
    ],
)
def test_a_number_out_of_range_is_told_its_range(
    refused: Refused, arguments: tuple[str, ...], complaint: str
) -> None:
    assert refused(*arguments).startswith(f"{complaint} (see muniment ")


@pytest.mark.parametrize("command", ["add", "recall"])
def test_a_url_that_no_command_can_use_is_refused_alike_by_all(
    refused: Refused, command: str
) -> None:
    assert "is not there: mkdir -p missing" in refused(
        command, "x", "--url", "sqlite:///missing/x.db"
    )
    assert "question mark" in refused(command, "x", "--url", "sqlite:///x.db?key=1")
    assert "must look like" in refused(command, "x", "--url", "memory.db")
