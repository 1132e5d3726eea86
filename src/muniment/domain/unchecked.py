"""Values made from what was checked before: the rows that a store itself has written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar

Made = TypeVar("Made")


def unchecked(kind: type[Made]) -> Callable[..., Made]:
    """A constructor of a slotted dataclass that takes every field in order and checks nothing.

    The values must be exactly as a checked instance holds them (read-only mappings, tuples,
    enum members, times in UTC). Never for what comes from outside.
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    # Of the same slots, and open: filled at the speed of plain attributes, then made what it is.
    draft: type[Any] = make_dataclass("Draft", names, slots=True, eq=False, repr=False)

    def make(*values: Any) -> Made:
        made = draft(*values)
        made.__class__ = kind
        filled: Made = made
        return filled

    return make
