"""Every test that a page names exists and is collected; every hazard has one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doubles.app import running_app
from tests.doubles.requests import routes_of
from tests.doubles.variables import read_variables

ROOT = Path(__file__).parents[2]
CITING = [ROOT / f"docs/{name}.md" for name in ("hazards", "threat-model", "service-tests")]
CITED = re.compile(r"\[`([\w.]+)`\]\(\.\./((?:tests|src/muniment/testing)/[\w/]+\.py)\)")
HAZARD = re.compile(r"^\| (\d+) \|.*$", re.MULTILINE)
ROW = re.compile(r"^\| (`[^|]+`) \| (.+) \|$", re.MULTILINE)
SERVICE_ROWS = (ROOT / "docs/service-tests.md").read_text("utf-8")
ONE_STORE = ("(before any store)", "(of a SQLite file alone)")
SPECS = "src/muniment/testing/specs/"
TWO_PROCESSES = {
    f"tests/scenario/test_service_{name}.py" for name in ("rows", "replicas", "settings_apart")
}
RETENTION = {f"MEMORY_RETENTION_DAYS_{scope}" for scope in ("SESSION", "USER", "PROJECT")}
FIELDS = {"MEMORY_EXTRACTION_ENABLED", "MEMORY_EXTRACTION_PROJECT_SCOPE"}
OF_THE_REFERENCE = RETENTION | FIELDS | {"MEMORY_ENABLED", "AUTH_USER_ID_CLAIM", "CONTROL_DB_URL"}


def citations(text: str) -> set[tuple[str, str]]:
    """The name and the file of each."""
    return {(name, file) for name, file in CITED.findall(text)}


@pytest.fixture(scope="module")
def collected() -> set[str]:
    """The ids of everything that the cited files, and the stores' contract, are tested by."""
    cited = {file for page in CITING for _, file in citations(page.read_text("utf-8"))}
    files = sorted({file for file in cited if not file.startswith(SPECS)} | {"tests/contract"})
    missing = [file for file in cited if not (ROOT / file).is_file()]
    assert missing == []
    done = subprocess.run(  # noqa: S603 - our own interpreter and files
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return set(done.stdout.splitlines())


def is_collected(name: str, file: str, collected: set[str]) -> bool:
    if file.startswith(SPECS):
        return any(each.endswith(f":{name}]") for each in collected)
    wanted = file if name.endswith(".py") else f"{file}::{name}"
    return any(re.match(rf"{re.escape(wanted)}(::|\[|$)", each) for each in collected)


@pytest.mark.parametrize("page", CITING, ids=lambda page: page.name)
def test_every_cited_test_is_collected(page: Path, collected: set[str]) -> None:
    cited = citations(page.read_text("utf-8"))
    assert cited
    assert {each for each in cited if not is_collected(*each, collected)} == set()


def test_a_name_that_no_test_has_is_noticed(collected: set[str]) -> None:
    assert is_collected("test_hazard_6_ghosts", "tests/scenario/test_hazards.py", collected)
    assert not is_collected("test_hazard_6", "tests/scenario/test_hazards.py", collected)
    assert not is_collected("no_such_spec", f"{SPECS}memories.py", collected)


def test_every_hazard_has_a_test() -> None:
    rows = HAZARD.finditer((ROOT / "docs/hazards.md").read_text("utf-8"))
    cited = {int(row[1]) for row in rows if citations(row[0])}
    assert cited == set(range(1, 29))


def _rows() -> dict[str, str]:
    """The tests of each route and each setting."""
    return {
        name: row[2]
        for row in ROW.finditer(SERVICE_ROWS)
        for name in re.findall(r"`([^`]+)`", row[1])
    }


async def test_every_route_and_setting_of_the_service_has_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_app(monkeypatch) as (app, _):
        routes = {f"{method} {path}" for method, path in routes_of(app)}
    settings = read_variables("server/settings.py", "settings.py")
    assert set(_rows()) == routes | settings | RETENTION | FIELDS


def test_every_row_of_the_service_is_tested_on_both_stores(collected: set[str]) -> None:
    for name, tests in _rows().items():
        if any(reason in tests for reason in ONE_STORE):
            continue
        ids = [
            each
            for test, file in citations(tests)
            for each in collected
            if each.startswith(f"{file}::{test}[")
        ]
        for store in ("sqlite", "postgres"):
            assert [each for each in ids if store in each], (name, store)


def test_every_row_of_the_service_is_tested_through_two_processes() -> None:
    rows = _rows()
    routes = {name for name in rows if " /" in name}
    assert len(routes) > 20
    alone = {
        name
        for name in routes | OF_THE_REFERENCE
        if not {file for _, file in citations(rows[name])} & TWO_PROCESSES
    }
    assert alone == set()
