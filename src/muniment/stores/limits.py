"""What a store takes, and how much of it one answer may hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from muniment.domain import checks
from muniment.domain.content import says_something
from muniment.domain.frozen import thaw
from muniment.domain.memory import Memory
from muniment.domain.owner import with_user
from muniment.domain.visibility import audience_key
from muniment.errors import InvalidEntryError, MemoryConfigurationError, MemoryScopeError
from muniment.governance.quotas import Quotas
from muniment.governance.tokens import TokenEstimator, checked_estimator, estimate_tokens

MAX_TEXT_BYTES = 8192
MAX_RESULTS = 50
MAX_METADATA_BYTES = 4096
MAX_METADATA_DEPTH = 8
MAX_METADATA_VALUES = 1000
LARGEST_TEXT_BYTES = 1 << 20
LARGEST_RESULTS = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What one store takes and gives: bytes of a text, hits of a search by realm, quotas a tenant,
    and how tokens are counted.
    """

    max_text_bytes: int = MAX_TEXT_BYTES
    max_results: int = MAX_RESULTS
    quotas: Quotas = field(default_factory=Quotas)
    count: TokenEstimator = estimate_tokens

    @classmethod
    def of(
        cls,
        *,
        max_text_bytes: int = MAX_TEXT_BYTES,
        max_results: int = MAX_RESULTS,
        quota_entries: int | None = None,
        quota_tokens: int | None = None,
        token_estimator: TokenEstimator | None = None,
    ) -> Limits:
        """The options of a store; MemoryConfigurationError for one that is out of range.

        A text may have 1 byte to 1 MiB, a search by realm 1 to 1000 results; a quota is None
        for none.
        """
        try:
            checks.whole("max_text_bytes", max_text_bytes, low=1, high=LARGEST_TEXT_BYTES)
            checks.whole("max_results", max_results, low=1, high=LARGEST_RESULTS)
        except ValueError as error:
            raise MemoryConfigurationError(str(error)) from None
        quotas = Quotas(quota_entries, quota_tokens)
        return cls(max_text_bytes, max_results, quotas, checked_estimator(token_estimator))


def checked_memory(memory: Memory, max_text_bytes: int = MAX_TEXT_BYTES) -> tuple[str, Memory]:
    """The memory's audience, and the memory as it is stored: with its user filled in.

    MemoryScopeError where the owner lacks a field of the scope; InvalidEntryError over a limit,
    or for a text with nothing visible in it.
    """
    key = audience_key(memory.scope, memory.owner)
    if key is None:
        raise MemoryScopeError(f"the owner lacks a field that scope {memory.scope.value} needs")
    if not says_something(memory.content):
        raise InvalidEntryError("content: must hold something visible")
    if len(memory.content.encode()) > max_text_bytes:
        raise InvalidEntryError(f"content: must have at most {max_text_bytes} bytes")
    check_metadata(memory.metadata)
    return key, replace(memory, owner=with_user(memory.owner))


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """InvalidEntryError over 4096 bytes as JSON, 8 deep, or 1000 values."""
    if not metadata:
        return
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


def within_tokens(
    memories: Iterable[Memory], max_tokens: int | None, count: TokenEstimator = estimate_tokens
) -> tuple[Memory, ...]:
    """In the order given, what fits the budget; one that does not is passed over."""
    if max_tokens is None:
        return tuple(memories)
    kept: list[Memory] = []
    left = max_tokens
    for memory in memories:
        cost = count(memory.content)
        if cost <= left:
            kept.append(memory)
            left -= cost
    return tuple(kept)
