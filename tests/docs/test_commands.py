"""The reference of the commands is that of the code."""

from __future__ import annotations

from pathlib import Path

from muniment.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs/commands.md"


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text("utf-8") == reference(), "run: make docs"


def test_every_command_is_described_and_every_option_has_words() -> None:
    for line in reference().splitlines():
        if line.startswith("| `"):
            assert line.split("|")[2].strip(), line
    assert "## `muniment add TEXT`" in reference()
