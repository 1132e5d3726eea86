"""The environment variables that the source reads."""

from __future__ import annotations

import re
from pathlib import Path

_SOURCE = Path(__file__).parents[2] / "src/muniment"
_READ = re.compile(r"(?:read\.\w+\(\s*|_claim\(read, |_quota\(read, )\"([A-Z_]+)\"")
_OF_AN_ERROR = re.compile(r"read\.error\([^)]*\)")


def read_variables(*files: str) -> set[str]:
    """Those that `files` read, without a prefix."""
    text = "".join((_SOURCE / file).read_text("utf-8") for file in files)
    return set(_READ.findall(_OF_AN_ERROR.sub("", text)))
