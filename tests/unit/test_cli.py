"""The command line: what it prints, its exit codes, and that bad input changes nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.cli.app import run

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(muniment.__file__).parents[1])}
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def call(folder: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return called


def document(call: Call, *arguments: str) -> Any:
    code, out, _ = call(*arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_what_was_added_is_found_and_recalled(call: Call) -> None:
    stored = document(call, "add", "Ana lives in Porto.", "--user", "ana", "--importance", "0.9")
    assert (stored["trust"], stored["scope"], stored["source"]) == ("owner", "user", "cli")
    found = document(call, "search", "Porto", "--user", "ana")
    assert [each["memory_id"] for each in found] == [stored["memory_id"]]
    (recalled,) = document(call, "recall", "Where does Ana live?", "--user", "ana", "--explain")
    factors = recalled["factors"]
    product = recalled["relevance"]
    for factor in factors.values():
        product *= 1 + factor
    assert recalled["score"] == pytest.approx(product)
    assert factors["importance"] == pytest.approx(0.9)


def test_a_replaced_fact_stays_in_its_history_and_in_the_past(call: Call) -> None:
    old = document(call, "add", "Ana lives in Porto.", "--valid-from", "2026-01-06")
    new = document(
        call,
        *("add", "Ana lives in Ghent.", "--valid-from", "2026-04-25T00:00Z"),
        *("--replaces", old["memory_id"]),
    )
    chain = document(call, "history", old["memory_id"])
    assert [each["memory_id"] for each in chain] == [old["memory_id"], new["memory_id"]]
    assert chain[0]["invalid_at"] == "2026-04-25T00:00:00+00:00"
    (now,) = document(call, "recall", "Where does Ana live?")
    (then,) = document(call, "recall", "Where does Ana live?", "--as-of", "2026-02-01")
    assert (now["content"], then["content"]) == ("Ana lives in Ghent.", "Ana lives in Porto.")


def test_messages_make_sessions_that_can_be_listed_shown_renamed_and_deleted(call: Call) -> None:
    for role, text in (("user", "I bought a red kayak."), ("assistant", "Nice!")):
        call("add", text, "--message", "--session", "boats", "--role", role)
    listed = document(call, "sessions", "list")
    assert [(row["session_id"], row["messages"]) for row in listed["sessions"]] == [("boats", 2)]
    shown = document(call, "sessions", "show", "boats")
    assert [each["role"] for each in shown["messages"]] == ["user", "assistant"]
    assert document(call, "recall", "kayak")[0]["trust"] == "untrusted"
    assert document(call, "sessions", "rename", "boats", " Kayaks ")["title"] == "Kayaks"
    assert document(call, "sessions", "show", "boats")["title"] == "Kayaks"
    assert document(call, "sessions", "delete", "boats", "--yes")["messages"] == 2
    assert document(call, "sessions", "list")["sessions"] == []
    assert document(call, "recall", "kayak") == []


def test_a_context_has_the_window_and_what_other_sessions_know(call: Call) -> None:
    call("add", "I bought a red kayak.", "--message", "--session", "old")
    call("add", "Good morning!", "--message", "--session", "new")
    given = document(call, "context", "Which kayak did I buy?", "--session", "new")
    assert [each["content"] for each in given["messages"]] == ["Good morning!"]
    assert [each["content"] for each in given["recalled"]] == ["I bought a red kayak."]
    assert "red kayak" in given["rendered"]


def test_deleting_without_a_terminal_needs_a_yes_and_says_what_it_would_do(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("add", "I bought a red kayak.", "--message", "--session", "boats")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, out, err = call("sessions", "delete", "boats")
    assert (code, out) == (2, "")
    assert "boats" in err
    assert "1 message" in err
    assert len(document(call, "sessions", "list")["sessions"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("add",),
        ("add", "  "),
        ("add", "x", "--scope", "global"),
        ("add", "x", "--scope", "run"),
        ("add", "x", "--scope", "session"),
        ("add", "x", "--type", "summary"),
        ("add", "x", "--trust", "much"),
        ("add", "x", "--importance", "7"),
        ("add", "x", "--importance", "nan"),
        ("add", "x", "--valid-from", "soon"),
        ("add", "x", "--tenant", ""),
        ("add", "x", "--user", "a\nb"),
        ("add", "x", "--message"),
        ("add", "x", "--message", "--session", "s", "--role", "boss"),
        ("add", "x", "--message", "--session", "s", "--replaces", "m"),
        ("add", "x" * 9000),
        ("add", "x", "--url", "ftp://there"),
        ("add", "x", "--url", "sqlite:///."),
        ("recall", "x", "--as-of", "then"),
        ("recall", "x", "--limit", "0"),
        ("search", "x", "--min-trust", "much"),
        ("context", "x"),
        ("sessions", "rename", "s", "x" * 201),
        ("sessions", "list", "--cursor", "made-up"),
    ],
)
def test_bad_input_is_one_line_on_standard_error_and_changes_nothing(
    call: Call, arguments: tuple[str, ...]
) -> None:
    call("add", "Ana lives in Porto.")
    before = document(call, "search", "Porto"), document(call, "sessions", "list")
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("muniment: ")
    assert err.count("\n") == 1
    assert (document(call, "search", "Porto"), document(call, "sessions", "list")) == before
    assert document(call, "search", "x") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("history", "mem_none"),
        ("add", "x", "--replaces", "mem_none"),
        ("sessions", "show", "none"),
        ("sessions", "rename", "none", "title"),
        ("sessions", "delete", "none", "--yes"),
    ],
)
def test_what_is_not_there_is_a_failure_in_one_line(call: Call, arguments: tuple[str, ...]) -> None:
    call("add", "Ana lives in Porto.")
    code, out, err = call(*arguments)
    assert (code, out) == (1, "")
    assert "no such" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x"),
        ("recall", "x"),
        ("context", "x", "--session", "s"),
        ("history", "m"),
        ("sessions", "list"),
        ("doctor",),
    ],
)
def test_a_look_at_a_store_that_is_not_there_makes_no_file(
    call: Call, folder: Path, arguments: tuple[str, ...]
) -> None:
    call(*arguments, "--url", "sqlite:///mistyped.db")
    assert list(folder.iterdir()) == []


def test_stored_text_cannot_steer_the_terminal(call: Call) -> None:
    call("add", "red \x1b[31malert\u202e kayak", "--message", "--session", "s\u200b1")
    for arguments in (("sessions", "show", "s\u200b1"), ("recall", "kayak"), ("sessions", "list")):
        _, out, _ = call(*arguments)
        assert not set("\x1b\u202e\u200b") & set(out)


def test_markup_in_stored_text_is_shown_as_it_is(call: Call) -> None:
    call("add", "the [bold]kayak[/bold] :smile: [/nonsense]")
    _, out, _ = call("recall", "kayak", "--explain")
    assert "the [bold]kayak[/bold] :smile: [/nonsense]" in out


def test_the_doctor_names_versions_extras_and_the_store(call: Call) -> None:
    call("add", "Ana lives in Porto.")
    report = document(call, "doctor")
    states = {finding["name"]: finding["state"] for finding in report["findings"]}
    assert report["ok"] is True
    assert states["python"] == states["sqlite"] == states["store"] == states["schema"] == "ok"
    details = {finding["name"]: finding["detail"] for finding in report["findings"]}
    assert details["ranking"] == "learned (MUNIMENT_RANKING)"
    for finding in report["findings"]:
        if finding["state"] != "ok":
            assert "pip install" in finding["advice"]


def test_it_says_its_version(call: Call) -> None:
    code, out, problem = call("--version")
    assert (code, problem) == (0, "")
    assert out.startswith("muniment ")


def test_the_doctor_fails_where_the_store_cannot_be_reached(call: Call, folder: Path) -> None:
    (folder / "not.db").write_text("this is no database " * 100)
    for url in ("sqlite:///not.db", "sqlite:///no/folder.db", "ftp://there"):
        code, out, _ = call("doctor", "--json", "--url", url)
        assert code == 1
        assert json.loads(out)["ok"] is False


@pytest.mark.parametrize(
    ("url", "detail", "advice"),
    [
        ("sqlite:///folder", "is a folder", "--url sqlite:///folder/muniment.db"),
        ("sqlite:///folder/no/x.db", "does not exist", "mkdir -p folder/no"),
        ("sqlite:////proc/x.db", "read-only", "make /proc writable"),
        ("sqlite:///newer.db", "install a newer", "pip install -U muniment"),
        ("sqlite:///other.db", "another application's", "name another file"),
        ("sqlite:///garbage.db", "not a Muniment database", "encrypted"),
        ("ftp://there", "must look like", "MUNIMENT_DATABASE_URL"),
    ],
)
def test_the_doctor_says_what_to_do_about_a_store_that_cannot_be_used(
    call: Call, folder: Path, url: str, detail: str, advice: str
) -> None:
    (folder / "folder").mkdir()
    (folder / "garbage.db").write_text("this is no database " * 100)
    for name, statement in (("newer", "PRAGMA user_version = 99"), ("other", "CREATE TABLE t (x)")):
        if name == "newer":
            call("add", "Ana lives in Porto.", "--url", "sqlite:///newer.db")
        with closing(sqlite3.connect(folder / f"{name}.db")) as db:
            db.execute(statement)
            db.commit()
    before = {path: path.read_bytes() for path in folder.glob("*.db")}
    code, out, _ = call("doctor", "--json", "--url", url)
    store = next(each for each in json.loads(out)["findings"] if each["name"] == "store")
    assert (code, store["state"]) == (1, "failed")
    assert detail in store["detail"]
    assert advice in store["advice"]
    assert {path: path.read_bytes() for path in folder.glob("*.db")} == before


def test_the_doctor_shows_no_password() -> None:
    from muniment.cli.doctor_store import without_secret

    assert without_secret("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"


def test_help_names_the_exit_codes_and_the_trusted_operator(call: Call) -> None:
    code, out, _ = call("--help")
    assert code == 0
    words = " ".join(out.split())
    assert "Exit codes: 0 done, 1 it could not be done, 2 bad input" in words
    assert "trusted operator" in words
    for command in ("add", "search", "recall", "context"):
        _, out, _ = call(command, "--help")
        assert "trusted-operator use" in " ".join(out.split())


def test_the_library_is_used_without_loading_the_command_line() -> None:
    code = (
        "import sys, muniment, muniment.wiring, muniment.stores.sqlite;"
        "sys.exit(bool({'typer', 'rich', 'click'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)  # noqa: S603 - our own interpreter


def test_a_reader_that_leaves_early_is_no_error_message(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "muniment", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert errors == b""
