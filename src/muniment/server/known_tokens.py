"""Tokens that were verified lately, so that a caller's next request need not verify it again."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

_MOST = 10_000
Identity = TypeVar("Identity")


@dataclass(frozen=True, slots=True)
class Known(Generic[Identity]):
    """What a verified token says, its end (Unix seconds), its header, and the key that verified
    it: a token is worth nothing once that key is not its header's any more."""

    identity: Identity
    until: float
    header: Mapping[str, Any]
    key: Any


class KnownTokens(Generic[Identity]):
    """The newest tokens by their digest; a token itself is not held."""

    def __init__(self, clock: Callable[[], float], *, most: int = _MOST) -> None:
        self._clock = clock
        self._most = most
        self._held: OrderedDict[bytes, Known[Identity]] = OrderedDict()

    def get(self, token: str) -> Known[Identity] | None:
        """What is known of `token`, unless it ran out."""
        digest = _digest(token)
        known = self._held.get(digest)
        if known is None:
            return None
        if self._clock() >= known.until:
            del self._held[digest]
            return None
        self._held.move_to_end(digest)
        return known

    def put(self, token: str, known: Known[Identity]) -> None:
        """Hold what a verified token says; the one used longest ago makes room."""
        self._held[_digest(token)] = known
        if len(self._held) > self._most:
            self._held.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
