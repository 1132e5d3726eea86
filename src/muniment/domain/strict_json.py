"""JSON without what readers of it disagree about: repeated names, and numbers that are none."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MOST_NESTED = 500
"""How many lists and objects may stand within each other. How many an interpreter reads differs
by its version, and what reads the value later takes fewer."""


class MalformedJsonError(ValueError):
    """What is wrong with a text, in words that quote nothing of it."""


def read_json(text: bytes) -> Any:
    """The value that `text` holds.

    MalformedJsonError for what is not JSON in UTF-8, is nested too deep, names a field twice or
    holds a number that is not finite.
    """
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except MalformedJsonError:
        raise
    except RecursionError:
        raise MalformedJsonError("is nested too deep") from None
    except ValueError:
        raise MalformedJsonError("must be JSON in UTF-8") from None
    if text.count(b"[") + text.count(b"{") > MOST_NESTED and _is_deeper(value, MOST_NESTED):
        raise MalformedJsonError("is nested too deep")
    return value


def read_object(text: bytes) -> dict[str, Any]:
    """`read_json` of an object."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise MalformedJsonError("must be a JSON object")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    within = [value]
    for _ in range(levels + 1):
        held = [one.values() if isinstance(one, dict) else one for one in within if _holds(one)]
        if not held:
            return False
        within = [inner for each in held for inner in each]
    return True


def _holds(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise MalformedJsonError("names a field twice")
    return value


def _constant(_: str) -> NoReturn:
    raise MalformedJsonError("must hold finite numbers only")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _constant(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_finite)
