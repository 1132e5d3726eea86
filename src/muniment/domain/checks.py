"""Checks that the domain's values share. Errors name the field, never the content."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import TypeVar

Kind = TypeVar("Kind")

MAX_IDENTIFIER = 256


def identifier(name: str, value: object, *, maximum: int = MAX_IDENTIFIER) -> str:
    """`value` in NFC: 1 to `maximum` characters, not blank, no control characters."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be text")
    plain = value.isascii()  # every row read back passes here: the common case is quick
    text = value if plain else unicodedata.normalize("NFC", value)
    if not text.strip():
        raise ValueError(f"{name}: must not be blank")
    if len(text) > maximum:
        raise ValueError(f"{name}: must have at most {maximum} characters")
    if plain and text.isprintable():
        return text
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise ValueError(f"{name}: must not hold control characters or lone surrogates")
    return text


def of_type(name: str, value: object, kind: type[Kind]) -> Kind:
    """`value`, which is a `kind`."""
    if not isinstance(value, kind):
        wanted = "text" if kind is str else f"a {kind.__name__}"
        raise ValueError(f"{name}: must be {wanted}")
    return value


def optional_identifier(name: str, value: object) -> str | None:
    """Like `identifier`, with None for absent."""
    return None if value is None else identifier(name, value)


def storable_text(name: str, value: object) -> str:
    """`value` unchanged: text that is not blank and holds no NUL and no lone surrogate."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be text")
    if not value.strip():
        raise ValueError(f"{name}: must not be blank")
    encodable(name, value)
    return value


def encodable(name: str, value: str) -> str:
    """`value` unchanged; refused when it cannot be stored as UTF-8 text."""
    if "\x00" in value:
        raise ValueError(f"{name}: must not hold a NUL character")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{name}: must not hold a lone surrogate") from None
    return value


def instant(name: str, value: object) -> datetime:
    """`value` in UTC; naive times, and those that UTC cannot express, are refused."""
    if not isinstance(value, datetime):
        raise ValueError(f"{name}: must be a datetime")
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(f"{name}: must have a time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name}: must lie within years 1 to 9999 in UTC") from None


def optional_instant(name: str, value: object) -> datetime | None:
    """Like `instant`, with None for absent."""
    return None if value is None else instant(name, value)


def unit_interval(name: str, value: object) -> float:
    """`value` as a finite float in 0..1."""
    return finite(name, value, low=0.0, high=1.0)


def finite(name: str, value: object, *, low: float, high: float) -> float:
    """`value` as a finite float in low..high."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name}: must be a number")
    if not low <= value <= high:  # before it is a float: a whole number may be too large for one
        raise ValueError(f"{name}: must be a finite number from {low:g} to {high:g}")
    return float(value)


def whole(name: str, value: object, *, low: int, high: int) -> int:
    """`value` as an int in low..high."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name}: must be a whole number from {low} to {high}")
    return value
