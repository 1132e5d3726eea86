"""What the doctor finds: a thing looked at, its state, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `state` is ok, missing (optional), waiting (to be completed later) or
    failed; `advice` is what to do."""

    name: str
    state: str
    detail: str
    advice: str = ""


def tried(look: Callable[[], Found]) -> Found | Exception:
    """What `look` gives, or the error that it raises: a doctor reports what fails."""
    try:
        return look()
    except Exception as error:
        return error
