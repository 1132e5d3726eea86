"""`export` and `import`: a file and back, all or none, nothing overwritten."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muniment import ConversationIdentity, ConversationMessage, Scope, SQLiteStore
from muniment.cli.app import run

Call = Callable[..., tuple[int, str, str]]
ACME = ("--tenant", "acme")
ANA = (*ACME, "--user", "ana")


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
    with SQLiteStore("muniment.db") as store:
        old = store.add(Scope("acme", "ana"), "Ana drinks sencha.", trust="owner")
        store.supersede(Scope("acme", "ana"), old.id, "Ana drinks cocoa.", trust="owner")
        store.add(Scope("acme", "bo"), "Bo drinks rooibos.")
        store.add(Scope("acme-corp", "ana"), "Another Ana.")
    return call


def texts(call: Call, *selection: str) -> list[str]:
    return [entry["text"] for entry in document(call, "export", *selection)["entries"]]


def test_what_was_exported_is_imported_elsewhere(stored: Call, tmp_path: Path) -> None:
    made = document(stored, "export", "ana.jsonl", *ANA)
    assert made == {"file": "ana.jsonl", "entries": 2}
    assert stat.S_IMODE((tmp_path / "ana.jsonl").stat().st_mode) == 0o600
    other = ("--url", "sqlite:///other.db", *ANA)
    result = document(stored, "import", "ana.jsonl", *other)
    counted = dict.fromkeys(("skipped_duplicates", "dropped_links", "sessions", "messages"), 0)
    assert result == {"imported": 2, **counted}
    entries = document(stored, "export", *other)["entries"]
    assert [entry["text"] for entry in entries] == ["Ana drinks sencha.", "Ana drinks cocoa."]
    assert {entry["trust"] for entry in entries} == {"untrusted"}
    assert entries[0]["superseded_by"] == entries[1]["id"]


def test_conversations_go_along_where_they_are_asked_for(stored: Call) -> None:
    with SQLiteStore("muniment.db") as store:
        for user, title in (("ana", "Tea"), ("bo", "Coffee")):
            talk = ConversationIdentity("acme", None, f"s-{user}", user)
            said = ConversationMessage("m1", "user", f"{title}?", datetime.now(UTC))
            store.run(store.ports.conversations.create(talk, title=title))
            store.run(store.ports.conversations.append_messages(talk, [said]))
    made = document(stored, "export", *ANA, "--conversations")
    assert (made["count"], len(made["conversations"])) == (2, 2)
    assert "Coffee" not in json.dumps(made)
    document(stored, "export", "all.jsonl", "--conversations", *ACME)
    other = ("--url", "sqlite:///other.db", *ACME)
    code, _, err = stored("import", "all.jsonl", *other)
    assert (code, "not asked for" in err) == (2, True)
    code, out, _ = stored("import", "all.jsonl", "--conversations", *other)
    assert (code, out.splitlines()[1]) == (0, "  2 sessions, 2 messages")
    listed = document(stored, "sessions", "list", *ANA, "--url", "sqlite:///other.db")
    assert [each["title"] for each in listed["sessions"]] == ["Tea"]


def test_a_file_that_is_no_good_begins_no_store(
    stored: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document(stored, "export", "ana.jsonl", *ANA)
    whole = Path("ana.jsonl").read_bytes()
    for bad in (b"rubbish", whole[:-30], whole.replace(b'"trust"', b'"thrust"')):
        Path("bad.jsonl").write_bytes(bad)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(bad)))
        for source in ("bad.jsonl", "-"):
            code, _, err = stored("import", source, "--url", "sqlite:///new.db", *ANA)
            assert (code, err.count("line")) == (2, 1)
            assert not list(tmp_path.glob("new.db*"))


def test_trust_is_kept_as_far_as_it_is_allowed(stored: Call) -> None:
    document(stored, "export", "ana.jsonl", *ANA)
    other = ("--url", "sqlite:///other.db", *ANA)
    document(stored, "import", "ana.jsonl", "--max-trust", "model", *other)
    assert {entry["trust"] for entry in document(stored, "export", *other)["entries"]} == {"model"}


def test_what_is_stored_already_is_passed_over_unless_it_is_kept(stored: Call) -> None:
    document(stored, "export", "bo.jsonl", *ACME, "--user", "bo")
    bo = (*ACME, "--user", "bo")
    assert document(stored, "import", "bo.jsonl", *bo)["skipped_duplicates"] == 1
    code, out, _ = stored("import", "bo.jsonl", *bo)
    assert (code, out.splitlines()[1]) == (0, "  1 stored already")
    assert document(stored, "import", "bo.jsonl", "--keep-duplicates", *bo)["imported"] == 1
    assert texts(stored, *bo) == ["Bo drinks rooibos."] * 2


def test_another_tenants_file_is_refused_unless_it_is_moved(stored: Call) -> None:
    document(stored, "export", "ana.jsonl", *ANA)
    new = ("--tenant", "new")
    code, out, err = stored("import", "ana.jsonl", *new)
    assert (code, out, err.count("muniment:")) == (2, "", 1)
    assert "line 2" in err
    assert texts(stored, *new) == []
    assert document(stored, "import", "ana.jsonl", "--rescope", *new)["imported"] == 2
    assert len(texts(stored, *new, "--user", "ana")) == 2


def test_an_export_goes_to_standard_output_and_comes_from_standard_input(
    stored: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = stored("export", *ANA)
    assert code == 0
    assert "exported 2 memories of user ana, tenant acme" in err
    header, *entries = map(json.loads, out.splitlines())
    assert (header["count"], len(entries)) == (2, 2)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
    assert document(stored, "import", "-", "--url", "sqlite:///other.db", *ANA)["imported"] == 2


def test_an_existing_file_is_never_overwritten(stored: Call, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("mine", "link"):
        code, out, err = stored("export", name, *ANA)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "not overwritten" in err
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "line 1"),
        (b"secret\n", "line 1"),
        (b"HEADER\n{secret\n", "line 2"),
        (b"HEADER\n" + b"[" * 60_000 + b"\n", "line 2"),
        (b"HEADER\n\xff\xfesecret\n", "line 2"),
    ],
)
def test_a_bad_file_is_named_by_its_line_and_nothing_is_imported(
    stored: Call, tmp_path: Path, content: bytes, named: str
) -> None:
    document(stored, "export", "good", *ANA)
    header = (tmp_path / "good").read_bytes().splitlines()[0].replace(b":2", b":1")
    (tmp_path / "file").write_bytes(content.replace(b"HEADER", header))
    before = texts(stored, *ANA)
    code, out, err = stored("import", "file", *ANA)
    assert (code, out, err.count("muniment:")) == (2, "", 1)
    assert named in err
    assert "secret" not in err
    assert texts(stored, *ANA) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "none"),
        ("import", "."),
        ("import", "good", "--max-trust", "much"),
        ("import", "good", "--tenant", ""),
        ("export", "--tenant", "a\nb"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    stored: Call, arguments: tuple[str, ...]
) -> None:
    document(stored, "export", "good", *ANA)
    before = texts(stored, *ANA)
    code, out, err = stored(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert texts(stored, *ANA) == before
