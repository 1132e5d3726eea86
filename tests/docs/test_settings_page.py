"""The page of the settings names each that is read, with the default that holds."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from muniment.context.policy import MemoryPolicy
from muniment.settings import Settings, load_settings
from tests.doubles.variables import read_variables

PAGE = (Path(__file__).parents[2] / "docs/settings.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `MUNIMENT_(\w+)` \| `([^`]*)` \|", PAGE, re.MULTILINE))
NAMED = set(re.findall(r"`MUNIMENT_(\w+)`", PAGE))
RETENTION = {f"MEMORY_RETENTION_DAYS_{scope}" for scope in ("SESSION", "USER", "PROJECT")}


def test_every_setting_is_in_the_page_and_no_other() -> None:
    policy = {f"MEMORY_{each.name.upper()}" for each in fields(MemoryPolicy)}
    read = read_variables("settings.py") | policy | RETENTION
    assert read - {"MEMORY_RETENTION"} == NAMED


@pytest.mark.parametrize("name", sorted(ROWS.keys() - {"MODEL_TIMEOUT_SECONDS"}))
def test_a_default_of_the_page_is_the_one_that_holds(name: str) -> None:
    told = load_settings({f"MUNIMENT_{name}": ROWS[name]})
    assert told == load_settings({})


def test_a_models_default_of_the_page_is_the_one_that_holds() -> None:
    name = "MODEL_TIMEOUT_SECONDS"

    def with_model(**values: str) -> Settings:
        return load_settings({"MUNIMENT_MODEL": "m", **values})

    assert with_model(**{f"MUNIMENT_{name}": ROWS[name]}) == with_model()
