"""What a recall passes over, and the winners read back as memories."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.visibility import is_message_audience
from muniment.evidence.score import Scored
from muniment.ports import Candidate
from muniment.stores.asks import Ask
from muniment.stores.recalled import recalled_row
from muniment.stores.rows import instant_of, memory_of
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.statements import SQL


def excluded_seqs(db: apsw.Connection, ask: Ask) -> frozenset[int]:
    """The rows of the messages that the turn's window holds already."""
    session, user = ask.owner.session_id, owner_user(ask.owner)
    if not ask.excluded or user is None:
        return frozenset()
    values = (ask.owner.tenant_id, user, session, json_list(ask.excluded))
    return frozenset(row[0] for row in db.execute(SQL["message_seqs"], values))


def hydrate(
    db: apsw.Connection, ask: Ask, keys: Sequence[str], found: Sequence[Scored]
) -> tuple[Candidate, ...]:
    """The winners as candidates; scope, validity, expiry and trust are asked again."""
    spoken = [is_message_audience(key) for key in keys]
    memories = _memories(db, ask, [hit.key for hit in found if not spoken[hit.corpus_index]])
    messages = _messages(db, ask, [hit.key for hit in found if spoken[hit.corpus_index]])
    rows = [messages if is_message else memories for is_message in spoken]
    return tuple(
        Candidate(memory, relevance, lanes)
        for corpus, key, relevance, lanes in found
        if (memory := rows[corpus].get(key)) is not None
    )


def _memories(db: apsw.Connection, ask: Ask, seqs: Sequence[int]) -> dict[int, Memory]:
    if not seqs:
        return {}
    values = {
        **ask.instants,
        "seqs": json_list(seqs),
        "keys": json_list(ask.keys),
        "trust": ask.trust,
    }
    return {row[0]: memory_of(row[1:]) for row in db.execute(SQL["hydrate_memories"], values)}


def _messages(db: apsw.Connection, ask: Ask, seqs: Sequence[int]) -> dict[int, Memory]:
    if not seqs:
        return {}
    values = {
        "seqs": json_list(seqs),
        "keys": json_list(ask.message_keys),
        "session": ask.session,
        "said_until": ask.instants["said_until"],
    }
    owner = MemoryOwner(ask.owner.tenant_id, user_id=owner_user(ask.owner), session_id=ask.session)
    found: dict[int, Memory] = {}
    for seq, session, message_id, role, content, at, name in db.execute(
        SQL["hydrate_messages"], values
    ):
        said = (message_id, role, content, instant_of(at), name)
        found[seq] = recalled_row(owner, session, said)
    return found
