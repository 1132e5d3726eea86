"""New opaque identifiers, sortable by the time of their making."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from os import urandom

DEFAULT_TENANT = "DEFAULT"
DEFAULT_USER = "DEFAULT_USER"  # the command line's, and a service's without authentication

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, lower case
_DIGIT_OF_BYTE = _DIGITS.encode() * 8  # the low five bits of a byte are a digit
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]


def _sortable() -> str:
    # 48 bits of milliseconds, then 80 random bits: the layout of a ULID.
    return _spelled(time.time_ns() // 1_000_000) + urandom(16).translate(_DIGIT_OF_BYTE).decode()


@lru_cache(maxsize=1)
def _spelled(milliseconds: int) -> str:
    return "".join([_PAIRS[(milliseconds >> shift) & 1023] for shift in range(40, -1, -10)])


def new_memory_id() -> str:
    """An opaque id such as ``mem_01j...``, sortable by time."""
    return f"mem_{_sortable()}"


def new_memory_ids() -> Iterator[str]:
    """Ids like those of `new_memory_id` without end, in rising order.

    Each 1,024 of them share their first 70 random bits and count on from there, which costs a
    tenth and lets an index be filled from left to right.
    """
    while True:
        head = new_memory_id()[:-2]
        for tail in _PAIRS:
            yield head + tail


def new_session_id() -> str:
    """An opaque id such as ``ses_01j...``, sortable by time."""
    return f"ses_{_sortable()}"


def new_message_id() -> str:
    """An opaque id such as ``msg_01j...``, sortable by time."""
    return f"msg_{_sortable()}"
