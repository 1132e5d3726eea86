"""Which memory, if any, a new fact may close."""

from __future__ import annotations

from dataclasses import dataclass

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.extraction.existing import Shown


@dataclass(frozen=True, slots=True)
class Replacement:
    """`supersedes` is to be closed; `conflicts` is of higher trust and stays beside the new one;
    `ignored` counts the references that had no effect."""

    supersedes: Memory | None = None
    conflicts: Memory | None = None
    ignored: int = 0


def replacement(
    replaces: str, *, shown: Shown, owner: MemoryOwner, scope: MemoryScope, trust: Trust
) -> Replacement:
    """What `replaces` may do. Unknown, several, foreign or closed references do nothing."""
    found, unknown = shown.resolve(replaces)
    if len(found) != 1:
        return Replacement(ignored=unknown + len(found))
    prior = found[0]
    if not _may_change(prior, owner, scope):
        return Replacement(ignored=unknown + 1)
    if prior.trust > trust:
        return Replacement(conflicts=prior, ignored=unknown)
    return Replacement(supersedes=prior, ignored=unknown)


def _may_change(prior: Memory, owner: MemoryOwner, scope: MemoryScope) -> bool:
    if prior.scope is not scope or prior.superseded_by is not None:
        return False
    # A project's memory is everybody's to read and its author's to change.
    return scope is not MemoryScope.PROJECT or owner_user(prior.owner) == owner_user(owner)
