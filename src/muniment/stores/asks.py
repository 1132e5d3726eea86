"""What a listing, a search or a recall asks of the memories that its caller may see."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.query import MemoryQuery, Reach
from muniment.domain.trust import Trust
from muniment.domain.visibility import audiences, message_audience
from muniment.evidence.corpus import MESSAGE, Corpus
from muniment.evidence.eligibility import Filters
from muniment.evidence.score import Scored, score
from muniment.evidence.weights import Ranking
from muniment.stores.rows import micros

_LEAST_COMPARED = 100
_EVERY_TYPE = frozenset(kind.value for kind in MemoryType)


@dataclass(frozen=True, slots=True)
class Ask:
    """Which rows may be found, and by what. `keys` are the audiences of the memories among them.

    `types` are kinds of memory, `trust` is the least rank; `excluded` are ids of messages that
    are not to be found, which concern `messages` ("off", "session" or "user") alone.
    """

    owner: MemoryOwner
    keys: tuple[str, ...]
    types: frozenset[str]
    now: datetime
    as_of: datetime | None = None
    include_invalid: bool = False
    trust: int = 0
    limit: int = 100
    text: str = ""
    embedding: Sequence[float] | None = None
    messages: str = "off"
    session: str | None = None
    excluded: tuple[str, ...] = ()
    reach: Reach | None = None

    @classmethod
    def of_caller(cls, caller: MemoryOwner, now: datetime) -> Ask:
        """Whatever the caller may see."""
        return cls(owner=caller, keys=audiences(caller), types=_EVERY_TYPE, now=now)

    @classmethod
    def of_query(
        cls, query: MemoryQuery, now: datetime, embedding: Sequence[float] | None = None
    ) -> Ask:
        """A query's. With an embedding it goes by meaning alone, so that no word is asked for."""
        by_words = embedding is None
        return cls(
            owner=query.owner,
            keys=audiences(query.owner, query.scopes),
            types=types_of(query.memory_types) or _EVERY_TYPE,
            now=now,
            as_of=query.as_of,
            include_invalid=query.include_invalid,
            trust=trust_floor(query.min_trust),
            limit=query.limit if by_words else max(query.limit, _LEAST_COMPARED),
            text=(query.text or "") if by_words else "",
            embedding=embedding,
        )

    @property
    def message_keys(self) -> tuple[str, ...]:
        """The caller's message audience, where messages are asked for and can be addressed."""
        user = owner_user(self.owner)
        without_session = self.messages == "session" and self.session is None
        if self.messages == "off" or user is None or without_session:
            return ()
        return (message_audience(self.owner.tenant_id, user),)

    @property
    def all_keys(self) -> tuple[str, ...]:
        """Every audience of which rows may be found."""
        return (*self.keys, *self.message_keys)

    @property
    def narrowed_types(self) -> list[str] | None:
        """The types of memory in a fixed order; None where every type may be found."""
        return None if self.types == _EVERY_TYPE else sorted(self.types)

    @property
    def instants(self) -> dict[str, Any]:
        """The parameters of validity and expiry, in microseconds since 1970.

        What was said is found however the clock steps: it ends at an `as_of` alone.
        """
        now, as_of = micros(self.now), None if self.as_of is None else micros(self.as_of)
        return {
            "now": now,
            "at": now if as_of is None else as_of,
            "said_until": as_of,
            "any_time": self.include_invalid,
        }

    def scored(
        self,
        corpora: Sequence[Corpus],
        *,
        embedding: Sequence[float] | None,
        skipped: Collection[int],
        weights: Ranking,
    ) -> list[Scored]:
        """The rows found in the corpora of `all_keys`, best first.

        `embedding` is the ask's own as far as it can be compared with what the store holds;
        `skipped` are the keys of the messages excluded.
        """
        filters = Filters(
            now=self.now.timestamp(),
            as_of=None if self.as_of is None else self.as_of.timestamp(),
            include_invalid=self.include_invalid,
            kinds=self.types | {MESSAGE} if self.message_keys else self.types,
            session=self.session,
            excluded=skipped,
            min_trust=self.trust,
        )
        return score(
            corpora,
            self.text,
            filters,
            embedding=embedding,
            limit=self.limit,
            reach=self.reach,
            weights=weights,
        )


def types_of(memory_types: Sequence[MemoryType]) -> frozenset[str]:
    """Types of memory as rows hold them."""
    return frozenset(kind.value for kind in memory_types)


def trust_floor(trust: Trust | None) -> int:
    """The rank that a row needs; 0 where there is no floor."""
    return 0 if trust is None else Trust(trust).rank
