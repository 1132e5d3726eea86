"""What a store takes, and how much of it one answer may hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from muniment.domain.frozen import thaw
from muniment.domain.memory import Memory
from muniment.domain.owner import with_user
from muniment.domain.visibility import audience_key
from muniment.errors import InvalidEntryError, MemoryScopeError
from muniment.governance.tokens import estimate_tokens

MAX_TEXT_BYTES = 8192
MAX_METADATA_BYTES = 4096
MAX_METADATA_DEPTH = 8
MAX_METADATA_VALUES = 1000


def checked_memory(memory: Memory) -> tuple[str, Memory]:
    """The memory's audience, and the memory as it is stored: with its user filled in.

    MemoryScopeError where the owner lacks a field of the scope; InvalidEntryError over a limit.
    """
    key = audience_key(memory.scope, memory.owner)
    if key is None:
        raise MemoryScopeError(f"the owner lacks a field that scope {memory.scope.value} needs")
    if len(memory.content.encode()) > MAX_TEXT_BYTES:
        raise InvalidEntryError(f"content: must have at most {MAX_TEXT_BYTES} bytes")
    check_metadata(memory.metadata)
    return key, replace(memory, owner=with_user(memory.owner))


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """InvalidEntryError over 4096 bytes as JSON, 8 deep, or 1000 values."""
    depth, values = _extent(metadata)
    if depth > MAX_METADATA_DEPTH:
        raise InvalidEntryError(f"metadata: must be nested at most {MAX_METADATA_DEPTH} deep")
    if values > MAX_METADATA_VALUES:
        raise InvalidEntryError(f"metadata: must hold at most {MAX_METADATA_VALUES} values")
    written = json.dumps(thaw(metadata), ensure_ascii=False, separators=(",", ":"))
    if len(written.encode()) > MAX_METADATA_BYTES:
        raise InvalidEntryError(f"metadata: must have at most {MAX_METADATA_BYTES} bytes")


def _extent(value: object) -> tuple[int, int]:
    """How deep a value is nested, and how many values it holds below itself."""
    if isinstance(value, Mapping):
        below = [_extent(item) for item in value.values()]
    elif isinstance(value, tuple):
        below = [_extent(item) for item in value]
    else:
        return 0, 0
    return 1 + max((d for d, _ in below), default=0), len(below) + sum(n for _, n in below)


def within_tokens(memories: Iterable[Memory], max_tokens: int | None) -> tuple[Memory, ...]:
    """In the order given, what fits the budget; one that does not is passed over."""
    if max_tokens is None:
        return tuple(memories)
    kept: list[Memory] = []
    left = max_tokens
    for memory in memories:
        cost = estimate_tokens(memory.content)
        if cost <= left:
            kept.append(memory)
            left -= cost
    return tuple(kept)
