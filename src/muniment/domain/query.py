"""What a search by visibility asks for, and what an index and a resolver answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from muniment.domain import checks
from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust


class Reach(NamedTuple):
    """Which candidates can matter to a recall that looks at `rows` of them.

    A relevance is multiplied by 1 + importance, by 1 + 0.5 ^ (age at `now` / `half_life`), and for
    whatever else counts by 1 to `factor`: one that stays below those of `rows` others whatever
    that is, is out of reach. `now` and `half_life` are seconds, the former since 1970.
    """

    rows: int
    factor: float
    now: float
    half_life: float


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """A search as `owner`. Empty scopes or types mean all that are visible; limit is 1..1000.

    By default only memories valid now come back; `as_of` asks about that instant;
    `include_invalid` drops the validity filter. Expired memories never come back.
    """

    owner: MemoryOwner
    scopes: tuple[MemoryScope, ...] = ()
    memory_types: tuple[MemoryType, ...] = ()
    text: str | None = None
    limit: int = 20
    include_invalid: bool = False
    as_of: datetime | None = None
    min_trust: Trust | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not isinstance(self.owner, MemoryOwner):
            raise ValueError("owner: must be a MemoryOwner")
        put(self, "scopes", tuple(MemoryScope(scope) for scope in self.scopes))
        put(self, "memory_types", tuple(MemoryType(kind) for kind in self.memory_types))
        for name in ("scopes", "memory_types"):
            if len(set(getattr(self, name))) != len(getattr(self, name)):
                raise ValueError(f"{name}: must not repeat")
        if self.text is not None and (not isinstance(self.text, str) or not self.text.strip()):
            raise ValueError("text: must not be blank")
        checks.whole("limit", self.limit, low=1, high=1000)
        put(self, "as_of", checks.optional_instant("as_of", self.as_of))
        if self.min_trust is not None:
            put(self, "min_trust", Trust(self.min_trust))
        if self.max_tokens is not None:
            checks.whole("max_tokens", self.max_tokens, low=1, high=2**31)


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """An index's hit; `score` is finite, higher is better (cosine where embedded)."""

    memory_id: str
    score: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise ValueError("score: must be finite")


@dataclass(frozen=True, slots=True)
class ResolvedEntity:
    """A mention and the knowledge-graph node it names; `confidence` is 0..1."""

    mention: str
    entity_id: str
    confidence: float

    def __post_init__(self) -> None:
        checks.identifier("entity_id", self.entity_id)
        checks.unit_interval("confidence", self.confidence)
