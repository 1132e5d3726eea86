"""The prompts of extraction, one text file each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """The text of ``<name>.txt`` beside this file."""
    return (files(__name__) / f"{name}.txt").read_text(encoding="utf-8").strip()
