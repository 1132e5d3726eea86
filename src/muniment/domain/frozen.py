"""Deeply immutable JSON values, for a memory's metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from muniment.domain import checks

MAX_DEPTH = 32
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def freeze_mapping(name: str, value: object) -> Mapping[str, Any]:
    """`value` as a read-only mapping, lists as tuples; refused unless JSON-representable."""
    if type(value) is dict and not value:
        return _NOTHING
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: must be a mapping")
    frozen: Mapping[str, Any] = _freeze(name, value, MAX_DEPTH)
    return frozen


def thaw(value: object) -> Any:
    """A plain, mutable copy of a frozen value: dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value


def _freeze(name: str, value: object, depth: int) -> Any:
    if depth == 0:
        raise ValueError(f"{name}: must be nested at most {MAX_DEPTH} deep")
    if isinstance(value, str):
        return checks.encodable(name, value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name}: must hold finite numbers only")
        return value
    if isinstance(value, Mapping):
        return MappingProxyType(
            {_key(name, key): _freeze(name, item, depth - 1) for key, item in value.items()}
        )
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(name, item, depth - 1) for item in value)
    raise ValueError(f"{name}: must be representable as JSON")


def _key(name: str, key: object) -> str:
    if not isinstance(key, str):
        raise ValueError(f"{name}: keys must be text")
    return checks.encodable(name, key)
