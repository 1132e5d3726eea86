"""The commands by realm: what they select, say and change, and that bad input changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

import muniment
from muniment import Scope, SQLiteStore
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
    assert (code, out) == (0, "rebuilt the index of 5 memories and messages\n")
    assert err == "Rebuilding the index ...\n"


def test_reindex_of_a_user_needs_the_tenant(stored: Call) -> None:
    for part in ("--user", "--agent", "--session"):
        code, out, err = stored("reindex", part, "x")
        assert (code, out) == (2, "")
        assert "--tenant" in err


ACME = ("--tenant", "acme")
ANA = (*ACME, "--user", "ana")


def test_an_erasure_says_what_went_and_leaves_the_others(stored: Call) -> None:
    gone = document(stored, "erase", *ANA, "--yes")
    counts = {name: gone[name] for name in ("entries", "derived", "sessions", "messages")}
    assert counts == {"entries": 1, "derived": 0, "sessions": 1, "messages": 1}
    assert gone["pending"] is False
    assert document(stored, "recall", "sencha", *ANA) == []
    assert len(document(stored, "search", "cocoa", *ACME, "--user", "bo")) == 1
    assert len(document(stored, "recall", "rooibos", "--tenant", "acme-corp", "--user", "cy")) == 1
    again = document(stored, "erase", *ANA, "--yes")
    assert (again["entries"], again["messages"], again["receipt"]) == (0, 0, None)
    assert stored("erase", *ANA, "--yes")[1] == "erased nothing of user ana, tenant acme\n"


def test_an_erasure_prints_its_counts_and_its_receipt_on_one_line(stored: Call) -> None:
    code, out, err = stored("erase", *ACME, "--yes")
    assert (code, err) == (0, "")
    first, *rest = out.splitlines()
    assert first.startswith("erased 2 memories, 2 sessions and 2 messages of")
    assert "the whole tenant acme" in " ".join(out.split())
    assert rest[-1].startswith("receipt: muniment-erasure:")


@pytest.mark.parametrize("command", ["erase", "sweep"])
def test_what_destroys_says_beforehand_what_it_would_do_and_needs_a_yes(
    stored: Call, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    past = datetime(2026, 1, 1, tzinfo=UTC)
    with SQLiteStore("muniment.db", clock=lambda: past) as store:
        store.add(Scope("acme", "ana"), "tea today", expires_at=past + timedelta(days=1))
    before = document(stored, "export", *ANA)
    code, out, err = stored(command, *ANA)
    assert (code, out) == (2, "")
    assert {"erase": "2 memories, 1 session and 1 message", "sweep": "1 expired memory"}[
        command
    ] in err
    assert "user ana, tenant acme" in err
    assert document(stored, "export", *ANA) == before


@pytest.mark.parametrize("command", ["erase", "sweep"])
def test_where_nothing_would_go_nobody_is_asked(
    stored: Call, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, out, err = stored(command, "--tenant", "nobody")
    assert (code, err) == (0, "")
    assert "nothing" in out or "0 expired memories" in out


def test_erasing_needs_the_tenant_to_be_named(stored: Call) -> None:
    code, out, err = stored("erase", "--user", "ana", "--yes")
    assert (code, out) == (2, "")
    assert "--tenant" in err


def test_an_owner_whose_name_fits_no_realm_is_erased_too(call: Call) -> None:
    odd = ("--tenant", "acme/west", "--user", "ana bo")
    call("add", "Ana drinks sencha.", *odd)
    assert document(call, "usage", *odd)["entries"] == 1
    assert document(call, "erase", *odd, "--yes")["entries"] == 1
    assert call("erase", *odd, "--agent", "a", "--yes")[0] == 2


def test_what_was_derived_elsewhere_goes_along_unless_it_is_kept(
    call: Call, tmp_path: Path
) -> None:
    def derive() -> None:
        with SQLiteStore("muniment.db") as store:
            said = store.add(Scope("acme", "ana"), "Ana drinks sencha.")
            store.add(Scope("acme", "ana"), "Ana likes tea.", derived_from=[said.id])
            agent = Scope("acme", "ana", "planner")
            told = store.add(agent, "Ana asked for tea.")
            store.add(Scope("acme", "ana"), "Ana is planning.", derived_from=[told.id])

    derive()
    planner = (*ANA, "--agent", "planner")
    gone = document(call, "erase", *planner, "--yes")
    assert (gone["entries"], gone["derived"]) == (1, 1)
    derive()
    gone = document(call, "erase", *planner, "--keep-derived", "--yes")
    assert (gone["entries"], gone["derived"]) == (1, 0)


def test_a_sweep_removes_what_is_over_and_only_of_its_realm(call: Call) -> None:
    past = datetime(2026, 1, 1, tzinfo=UTC)
    with SQLiteStore("muniment.db", clock=lambda: past) as store:
        for user in ("ana", "bo"):
            store.add(Scope("acme", user), "tea today", expires_at=past + timedelta(days=1))
            store.add(Scope("acme", user), "tea always")
    assert document(call, "sweep", *ANA, "--yes") == {"swept": 1}
    assert document(call, "sweep", *ANA, "--yes") == {"swept": 0}
    code, out, _ = call("sweep", *ACME, "--yes")
    assert (code, out) == (0, "removed 1 expired memory of the whole tenant acme\n")
    assert document(call, "usage", *ACME)["entries"] == 2


def test_compacting_gives_space_back(stored: Call, tmp_path: Path) -> None:
    with SQLiteStore("muniment.db") as store:
        for number in range(200):
            store.add(Scope("acme", "ana"), f"{number} " + "sencha " * 500)
    size = (tmp_path / "muniment.db").stat().st_size
    stored("erase", *ANA, "--yes")
    assert document(stored, "compact") == {"compacted": True}
    assert (tmp_path / "muniment.db").stat().st_size < size / 2


def test_a_failure_on_a_damaged_log_is_one_line(audited: Call, tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_bytes(b"rubbish")
    for arguments in (("add", "Ana likes tea."), ("search", "tea")):
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "muniment", *arguments, *ANA],
            env={**os.environ, "PYTHONPATH": str(Path(muniment.__file__).parents[1])},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == (arguments[0] == "add")
        assert [line[:10] for line in done.stderr.splitlines()] == ["muniment: "]
        assert "the audit log is damaged" in done.stderr


def test_what_search_and_recall_give_out_is_counted_alike(stored: Call) -> None:
    served = []
    for command in ("search", "recall"):
        document(stored, command, "sencha", *ANA)
        used = document(stored, "usage", *ANA)
        served.append((used["searches"], used["served_entries"], used["served_tokens"]))
    (once, given, tokens), twice = served
    assert (once, given) == (1, 1)
    assert twice == (2, 2 * given, 2 * tokens)


def test_usage_counts_the_realm_and_what_the_tenants_searches_gave_out(stored: Call) -> None:
    with SQLiteStore("muniment.db") as store:
        store.ports.note_served("acme", 3, 70)
    used = document(stored, "usage", *ANA)
    assert used["entries"] == 1
    assert used["stored_tokens"] == -(-len("Ana drinks sencha.") // 3)
    assert document(stored, "usage", *ACME)["entries"] == 2
    assert (used["searches"], used["served_entries"], used["served_tokens"]) == (1, 3, 70)
    assert document(stored, "usage", "--tenant", "acme-corp")["searches"] == 0
    assert document(stored, "usage", *ANA, "--period", "2020-01-01")["searches"] == 0
    code, out, _ = stored("usage", *ANA)
    assert code == 0
    assert "stored now" in out


@pytest.mark.parametrize("arguments", [("usage", "--period", "soon"), ("usage", "--tenant", "")])
def test_bad_input_is_refused_in_one_line(stored: Call, arguments: tuple[str, ...]) -> None:
    code, out, err = stored(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("erase", *ACME, "--yes"), ("sweep", "--yes"), ("compact",), ("usage",)]
)
def test_a_store_that_is_not_there_is_not_made(
    call: Call, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def audited(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("MUNIMENT_AUDIT_PATH", "audit.jsonl")
    call("add", "Ana drinks sencha.", *ANA)
    call("add", "Ana said so.", "--message", "--session", "s", *ANA)
    return call


def test_a_sound_log_verifies_and_gives_its_anchor(audited: Call) -> None:
    found = document(audited, "audit", "verify")
    assert (found["ok"], found["error"]) == (True, None)
    assert found["records"] >= 2
    code, out, err = audited("audit", "verify")
    assert (code, err) == (0, "")
    assert f"--expected-last-hash {found['last_hash']}" in out
    anchor = ("--expected-count", str(found["records"]), "--expected-last-hash", found["last_hash"])
    assert audited("audit", "verify", *anchor)[0] == 0
    audited("add", "Ana likes tea.", *ANA)
    assert audited("audit", "verify", *anchor)[0] == 1
    assert audited("audit", "verify", "--log", "audit.jsonl")[0] == 0


def test_an_erasures_receipt_is_held_against_the_log(audited: Call) -> None:
    receipt = document(audited, "erase", *ANA, "--yes")["receipt"]
    found = document(audited, "audit", "verify", "--receipt", receipt)
    assert (found["ok"], found["erasure"]["realm"]) == (True, "tenant=acme/subject=ana")
    assert (found["erasure"]["entries"], found["erasure"]["messages"]) == (1, 1)
    code, out, _ = audited("audit", "verify", "--receipt", receipt)
    assert code == 0
    assert "tenant=acme/subject=ana was erased: 1 memory, 1 session and 1 message" in " ".join(
        out.split()
    )
    forged = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    code, out, err = audited("audit", "verify", "--receipt", forged)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no record holds the receipt" in err


def test_a_changed_or_shortened_or_missing_log_is_named(audited: Call, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    content = log.read_bytes()
    for changed in (content.replace(b"memory", b"mEmory", 1), content.splitlines(True)[0], b""):
        log.write_bytes(changed)
        code, out, err = audited("audit", "verify")
        assert (code, out, err.count("muniment:")) == (1, "", 1)
        assert "sencha" not in err
        code, out, _ = audited("audit", "verify", "--json")
        assert (code, json.loads(out)["ok"]) == (1, False)
    log.unlink()
    code, out, err = audited("audit", "verify", "--log", "audit.jsonl")
    assert (code, out) == (1, "")
    assert "missing" in err
    assert not log.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--receipt", "muniment-erasure:x"),
        ("--expected-count", "-1"),
        ("--expected-last-hash", "abc"),
    ],
)
def test_an_anchor_that_is_none_is_bad_input(audited: Call, arguments: tuple[str, ...]) -> None:
    code, out, err = audited("audit", "verify", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_without_a_log_there_is_nothing_to_verify(stored: Call) -> None:
    code, out, err = stored("audit", "verify")
    assert (code, out) == (2, "")
    assert "MUNIMENT_AUDIT_PATH" in err


def findings(call: Call) -> dict[str, dict[str, str]]:
    _, out, _ = call("doctor", "--json")
    return {each["name"]: each for each in json.loads(out)["findings"]}


def test_the_doctor_looks_at_the_audit_log_and_the_quotas(
    audited: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = findings(audited)
    assert found["audit log"]["state"] == "ok"
    assert "sound, 3 records" in found["audit log"]["detail"]
    assert found["quotas"]["detail"] == "none"
    monkeypatch.setenv("MUNIMENT_QUOTA_ENTRIES", "1000")
    assert findings(audited)["quotas"]["detail"] == "1,000 memories a tenant"
    monkeypatch.delenv("MUNIMENT_AUDIT_PATH")
    assert "MUNIMENT_AUDIT_PATH" in findings(audited)["audit log"]["detail"]


def test_a_damaged_log_is_put_away_and_a_new_one_says_so(audited: Call, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(log.read_bytes()[:20])
    assert document(audited, "erase", *ANA, "--yes")["entries"] == 1, "erasing goes on"
    assert audited("add", "Ana likes tea.", *ANA)[0] == 1
    found = findings(audited)
    assert (found["audit log"]["state"], found["audit outbox"]["state"]) == ("failed", "waiting")
    assert "1 record waits" in found["audit outbox"]["detail"]
    assert "muniment audit restart" in found["audit log"]["advice"]
    log.rename(tmp_path / "damaged.jsonl")
    log.touch(0o600)
    assert document(audited, "audit", "restart", "--yes") == {"restarted": True}
    assert document(audited, "audit", "restart", "--yes") == {"restarted": False}
    assert audited("add", "Ana likes tea.", *ANA)[0] == 0
    assert document(audited, "audit", "verify")["ok"] is True
    assert findings(audited)["audit log"]["state"] == "ok"
    assert "audit.restarted" in log.read_text()


def test_restarting_a_log_needs_a_log_and_a_yes(
    audited: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert audited("audit", "restart")[0] == 2
    monkeypatch.delenv("MUNIMENT_AUDIT_PATH")
    assert audited("audit", "restart", "--yes")[0] == 2


def test_an_erasure_that_waits_for_a_reader_says_so_and_compact_completes_it(
    stored: Call, tmp_path: Path
) -> None:
    with closing(apsw.Connection(str(tmp_path / "muniment.db"))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory").fetchone()
        code, out, _ = stored("erase", *ANA, "--yes")
        assert code == 0
        assert "muniment compact completes it" in " ".join(out.split())
        assert findings(stored)["erasure"]["state"] == "waiting"
        assert stored("compact")[0] == 1
    assert stored("compact")[0] == 0
    assert "erasure" not in findings(stored)
    left = b"".join(path.read_bytes() for path in tmp_path.glob("muniment.db*"))
    assert b"sencha" not in left


def test_the_doctor_says_whether_the_file_is_encrypted_and_what_a_wrong_key_needs(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("add", "Ana drinks sencha.", "--url", "sqlite:///plain.db")
    monkeypatch.setenv("MUNIMENT_DATABASE_URL", "sqlite:///plain.db")
    assert "MUNIMENT_ENCRYPTION_KEY" in findings(call)["encryption"]["detail"]
    monkeypatch.setenv("MUNIMENT_ENCRYPTION_KEY", "a long pass phrase")
    plain = findings(call)["store"]
    assert (plain["state"], "import into a new file" in plain["advice"]) == ("failed", True)
    monkeypatch.setenv("MUNIMENT_DATABASE_URL", "sqlite:///secret.db")
    call("add", "Ana drinks sencha.")
    assert findings(call)["encryption"]["detail"] == "the file is encrypted"
    monkeypatch.setenv("MUNIMENT_ENCRYPTION_KEY", "another pass phrase")
    code, out, err = call("search", "sencha")
    assert (code, out, err.count("\n")) == (1, "", 1)
    store = findings(call)["store"]
    assert "the key it was made with" in store["advice"]
    assert "pass phrase" not in json.dumps(store)
