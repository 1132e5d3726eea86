"""Whose a known fact is: another writer of a shared scope is told the fact and no more."""

from __future__ import annotations

from dataclasses import replace

from muniment.domain.memory import Memory
from muniment.domain.owner import owner_user, scope_query_owner
from muniment.ports import StoredFact


def told(stored: StoredFact, asker: Memory) -> StoredFact:
    """`stored` as the writer of `asker` is answered; unchanged where it is that writer's own.

    Of another user's fact stay id, content, type, scope, importance, times and trust.
    """
    known = stored.memory
    if owner_user(known.owner) == owner_user(asker.owner):
        return stored
    plain = replace(
        known,
        owner=scope_query_owner(known.owner, known.scope) or known.owner,
        metadata={},
        source=None,
        source_session_id=None,
        source_message_ids=(),
        derived_from=(),
        entity_ids=(),
        agent_id=None,
    )
    return replace(stored, memory=plain)
