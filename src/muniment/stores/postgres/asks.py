"""One recall as the reader sees it: which rows, and the winners read back as memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.visibility import is_message_audience, message_audience
from muniment.evidence.corpus import MESSAGE
from muniment.evidence.score import Scored
from muniment.ports import Candidate
from muniment.stores.postgres.audiences import Audience, digest_of
from muniment.stores.postgres.session import Session
from muniment.stores.recalled import recalled_row
from muniment.stores.rows import instant_of, memory_of

Place = tuple[int, int]  # audience and seq


@dataclass(frozen=True, slots=True)
class Ask:
    """What one recall may see. `keys` are audiences; times are microseconds."""

    owner: MemoryOwner
    keys: tuple[str, ...]
    kinds: frozenset[str]
    messages: str
    session: str | None
    excluded: tuple[str, ...]
    trust: int
    instants: dict[str, Any]

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
        """Every audience of this recall."""
        return (*self.keys, *self.message_keys)

    @property
    def scored_kinds(self) -> frozenset[str]:
        """The kinds of row that may be found."""
        return self.kinds | {MESSAGE} if self.message_keys else self.kinds


async def excluded_seqs(session: Session, ask: Ask) -> frozenset[int]:
    """The rows of the messages that the turn's window holds already."""
    user = owner_user(ask.owner)
    if not ask.excluded or user is None:
        return frozenset()
    values = {
        "digest": digest_of(message_audience(ask.owner.tenant_id, user)),
        "session": ask.owner.session_id,
        "ids": list(ask.excluded),
    }
    return frozenset(row[0] for row in await session.all("message_seqs", values))


async def hydrate(
    session: Session, ask: Ask, held: Sequence[Audience], found: Sequence[Scored]
) -> tuple[Candidate, ...]:
    """The winners as candidates; tenant, validity, expiry and trust are asked again."""
    places = [(held[hit.corpus_index], hit.key) for hit in found]
    spoken = [place for place in places if is_message_audience(place[0].key)]
    stored = [place for place in places if not is_message_audience(place[0].key)]
    rows = {**await _memories(session, ask, stored), **await _messages(session, ask, spoken)}
    answers = [(rows.get((audience.id, seq)), hit) for (audience, seq), hit in zip(
        places, found, strict=True)]  # fmt: skip
    return tuple(
        Candidate(memory, hit.relevance, hit.lanes) for memory, hit in answers if memory is not None
    )


async def _memories(
    session: Session, ask: Ask, places: Sequence[tuple[Audience, int]]
) -> dict[Place, Memory]:
    if not places:
        return {}
    values = {
        **ask.instants,
        "places": [audience.place for audience, _ in places],
        "audiences": sorted({audience.id for audience, _ in places}),
        "seqs": [seq for _, seq in places],
        "trust": ask.trust,
    }
    rows = await session.all("hydrate_memories", values)
    return {(row[0], row[1]): memory_of(row[2:]) for row in rows}


async def _messages(
    session: Session, ask: Ask, places: Sequence[tuple[Audience, int]]
) -> dict[Place, Memory]:
    if not places:
        return {}
    audience = places[0][0].id  # a user's messages are one audience
    values = {
        "audience": audience,
        "seqs": [seq for _, seq in places],
        "session": ask.session,
        "at": ask.instants["at"],
    }
    owner = MemoryOwner(ask.owner.tenant_id, user_id=owner_user(ask.owner), session_id=ask.session)
    found: dict[Place, Memory] = {}
    for seq, session_id, message_id, role, content, at, name in await session.all(
        "hydrate_messages", values
    ):
        said = (message_id, role, content, instant_of(at), name)
        found[audience, seq] = recalled_row(owner, session_id, said)
    return found
