"""Values made from what was checked before: the rows that a store itself has written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

Made = TypeVar("Made")


def unchecked(kind: type[Made]) -> Callable[..., Made]:
    """A constructor of a slotted dataclass that takes every field in order and checks nothing.

    The values must be exactly as a checked instance holds them (read-only mappings, tuples,
    enum members, times in UTC). Never for what comes from outside.
    """
    put = [getattr(kind, field.name).__set__ for field in fields(kind)]  # type: ignore[arg-type]
    new: Callable[[type[Made]], Made] = object.__new__

    def make(*values: Any) -> Made:
        made = new(kind)
        for put_one, value in zip(put, values, strict=True):
            put_one(made, value)
        return made

    return make
