"""Values made from what was checked before: the rows that a store itself has written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import fields
from itertools import repeat
from operator import call
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
        deque(map(call, put, repeat(made), values), maxlen=0)  # a loop without bytecode
        return made

    return make
