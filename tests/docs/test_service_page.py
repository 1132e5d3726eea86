"""The service's page and its compose file name what there is, and all of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.doubles.app import running_app
from tests.doubles.requests import routes_of
from tests.doubles.variables import read_variables

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/service.md").read_text("utf-8")


def test_every_setting_of_the_service_is_in_its_page() -> None:
    told = set(re.findall(r"`([A-Z_]{4,})`", PAGE))
    missing = read_variables("server/settings.py") - told
    assert missing == set()


def test_the_compose_file_sets_what_is_read() -> None:
    composed: Any = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text("utf-8"))
    known = read_variables("server/settings.py", "settings.py")
    for replica in ("one", "two"):
        names = composed["services"][replica]["environment"]
        assert {name.removeprefix("MUNIMENT_") for name in names} <= known
    assert set(composed["services"]["proxy"]["depends_on"]) == {"one", "two"}


async def test_every_route_is_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_app(monkeypatch) as (app, _):
        for _, path in routes_of(app):
            resource = path.split("/{")[0]
            last = "/" + resource.rpartition("/")[2]
            assert resource in PAGE or last in PAGE, path
