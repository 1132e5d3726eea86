"""JSON without what readers of it disagree about: repeated names, and numbers that are none."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


class MalformedJsonError(ValueError):
    """What is wrong with a text, in words that quote nothing of it."""


def read_json(text: bytes) -> Any:
    """The value that `text` holds.

    MalformedJsonError for what is not JSON in UTF-8, is nested too deep, names a field twice or
    holds a number that is not finite.
    """
    try:
        return _DECODER.decode(text.decode("utf-8"))
    except MalformedJsonError:
        raise
    except RecursionError:
        raise MalformedJsonError("is nested too deep") from None
    except ValueError:
        raise MalformedJsonError("must be JSON in UTF-8") from None


def read_object(text: bytes) -> dict[str, Any]:
    """`read_json` of an object."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise MalformedJsonError("must be a JSON object")
    return value


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
