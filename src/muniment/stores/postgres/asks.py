"""What a recall starts from, and the winners read back as memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.visibility import is_message_audience, message_audience
from muniment.evidence.score import Scored
from muniment.ports import Candidate
from muniment.stores.asks import Ask
from muniment.stores.postgres.audiences import Audience, digest_of, in_order, seen
from muniment.stores.postgres.session import Asked, Row, Session, numbers
from muniment.stores.recalled import recalled_row
from muniment.stores.rows import instant_of, memory_of

Place = tuple[int, int]  # audience and seq


@dataclass(frozen=True, slots=True)
class Standing:
    """What a recall starts from: its audiences, the rows that it passes over, and the width of
    the database's vectors, None while there is none."""

    held: list[Audience]
    skipped: frozenset[int]
    width: int | None


async def standing(session: Session, ask: Ask) -> Standing:
    """All of it in one round trip."""
    asked: list[Asked] = [("audiences", seen(ask.all_keys))]
    user = owner_user(ask.owner)
    if ask.excluded and user is not None:
        digest = digest_of(message_audience(ask.owner.tenant_id, user))
        values = {"digest": digest, "session": ask.owner.session_id, "ids": list(ask.excluded)}
        asked.append(("message_seqs", values))
    rows, *skipped = await session.together(*asked)
    return Standing(
        in_order([row[1:] for row in rows if row[1] is not None], ask.all_keys),
        frozenset(row[0] for found in skipped for row in found),
        rows[0][0],
    )


async def hydrate(
    session: Session, ask: Ask, held: Sequence[Audience], found: Sequence[Scored]
) -> tuple[Candidate, ...]:
    """The winners as candidates; tenant, validity, expiry and trust are asked again."""
    spoken = [is_message_audience(audience.key) for audience in held]
    said = [hit for hit in found if spoken[hit.corpus_index]]
    stored = [hit for hit in found if not spoken[hit.corpus_index]]
    asked: list[Asked] = []
    if stored:
        asked.append(("hydrate_memories", _memories_asked(ask, held, stored)))
    if said:
        asked.append(("hydrate_messages", _messages_asked(ask, held, said)))
    answers = iter(await session.together(*asked) if asked else ())
    rows: dict[Place, Memory] = {}
    if stored:
        rows.update(((row[0], row[1]), memory_of(row[2:])) for row in next(answers))
    if said:
        audience = held[said[0].corpus_index].id  # a user's messages are one audience
        rows.update(((audience, row[0]), recalled) for row, recalled in _said(ask, next(answers)))
    hydrated = ((rows.get((held[hit.corpus_index].id, hit.key)), hit) for hit in found)
    return tuple(Candidate(row, hit.relevance, hit.lanes) for row, hit in hydrated if row)


def _memories_asked(ask: Ask, held: Sequence[Audience], found: Sequence[Scored]) -> dict[str, Any]:
    return {
        **ask.instants,
        "places": [audience.place for audience in held],
        "which": numbers(hit.corpus_index + 1 for hit in found),
        "audiences": numbers({held[hit.corpus_index].id for hit in found}),
        "seqs": numbers(hit.key for hit in found),
        "trust": ask.trust,
    }


def _messages_asked(ask: Ask, held: Sequence[Audience], found: Sequence[Scored]) -> dict[str, Any]:
    return {
        "audience": held[found[0].corpus_index].id,
        "seqs": numbers(hit.key for hit in found),
        "session": ask.session,
        "said_until": ask.instants["said_until"],
    }


def _said(ask: Ask, rows: Iterable[Row]) -> Iterator[tuple[Row, Memory]]:
    user = owner_user(ask.owner)
    owner = MemoryOwner(ask.owner.tenant_id, user_id=user, session_id=ask.session)
    for row in rows:
        _, session_id, message_id, role, content, at, name = row
        yield (
            row,
            recalled_row(owner, session_id, (message_id, role, content, instant_of(at), name)),
        )
