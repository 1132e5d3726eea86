"""The advice of `doctor` and of a damaged audit log leads somewhere."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.cli import doctor_model
from muniment.cli.app import main, run

Model = Callable[[], dict[str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    return tmp_path


@pytest.fixture
def model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Model:
    def found() -> dict[str, str]:
        run(["doctor", "--json"])
        findings = json.loads(capsys.readouterr().out)["findings"]
        (only,) = [each for each in findings if each["name"] == "model"]
        return dict(only)

    monkeypatch.setenv("MUNIMENT_MODEL", "m")
    return found


def test_the_doctor_says_whether_the_model_listens(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("MUNIMENT_MODEL_BASE_URL", f"http://127.0.0.1:{port}/v1")
        assert (model()["state"], model()["detail"]) == (
            "ok",
            f"m at 127.0.0.1, port {port}: listening",
        )
    assert model()["state"] == "failed"
    assert "MUNIMENT_MODEL_BASE_URL" in model()["advice"]


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", "http://host:port/v1"])
def test_the_doctor_says_what_a_models_url_must_be(
    model: Model, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("MUNIMENT_MODEL_BASE_URL", url)
    assert model()["detail"] == "MUNIMENT_MODEL_BASE_URL: must be an http URL"


def test_the_doctor_says_which_extra_a_model_needs(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_model, "find_spec", lambda _: None)
    assert (model()["state"], model()["advice"]) == ("failed", "pip install 'muniment[openai]'")


def test_no_model_is_no_fault(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUNIMENT_MODEL")
    assert model()["state"] == "ok"


def test_a_restart_of_the_audit_log_says_what_stands_in_its_way_and_then_nothing_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = folder / "audit.jsonl"
    monkeypatch.setenv("MUNIMENT_AUDIT_PATH", str(log))
    assert run(["add", "Ana prefers email"]) == 0
    log.write_text("garbage\n", "utf-8")
    capsys.readouterr()
    assert run(["audit", "restart", "--yes"]) == 1
    assert "put that log away first, then restart" in capsys.readouterr().err
    log.unlink()
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # the command sets its own
    with pytest.raises(SystemExit) as ended:
        main(["audit", "restart", "--yes"])
    assert ended.value.code == 0
    assert tuple(capsys.readouterr()) == ("a new log begins\n", "")


def test_a_log_in_a_folder_that_is_not_there_is_told_by_the_write_and_by_the_doctor(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUNIMENT_AUDIT_PATH", str(folder / "missing" / "audit.jsonl"))
    assert run(["add", "Ana prefers email"]) == 1
    assert capsys.readouterr().err == (
        "muniment: the audit log cannot be written: it or its folder is missing; "
        "muniment doctor says what to do\n"
    )
    assert run(["doctor"]) == 1
    assert f"audit log: mkdir -p {folder}/missing" in capsys.readouterr().out.splitlines()
