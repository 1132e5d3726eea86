"""Reading what was typed into values; BadInput names the option and what it takes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from muniment.cli.exits import BadInput

_Enum = TypeVar("_Enum", bound=StrEnum)


def instant(option: str, text: str | None) -> datetime | None:
    """An ISO 8601 date or time; UTC where it names no zone."""
    if text is None:
        return None
    try:
        value = datetime.fromisoformat(text)
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(f"{option}: must be ISO 8601, such as 2026-03-01T09:00Z") from None


def choice(
    option: str, kind: type[_Enum], text: str, *, allowed: Sequence[_Enum] | None = None
) -> _Enum:
    """The member of `kind` (one of `allowed`) that `text` names, in any case."""
    members = list(kind) if allowed is None else allowed
    for member in members:
        if member.value == text.strip().lower():
            return member
    names = ", ".join(member.value for member in members)
    raise BadInput(f"{option}: must be one of {names}")


def named(option: str, value: str | None) -> str | None:
    """`value`, refused where it is there and blank: a variable of a script that was not set."""
    if value is not None and not value.strip():
        raise BadInput(f"{option}: must not be blank")
    return value


def text_of(name: str, text: str) -> str:
    """`text`, or standard input for a dash; refused where it is blank or not UTF-8."""
    try:
        given = sys.stdin.read() if text == "-" else text
        given.encode("utf-8")
    except UnicodeError:
        raise BadInput(f"{name}: must be UTF-8 text") from None
    if not given.strip():
        raise BadInput(f"{name}: must not be blank")
    return given
