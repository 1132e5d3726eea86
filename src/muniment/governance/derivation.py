"""What a memory may be derived from, and what falls when that is erased."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from muniment.domain.memory import Memory
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError

Key = TypeVar("Key")


def check_derivation(
    memory: Memory, sources: Mapping[str, Trust], *, held: Collection[str] = ()
) -> None:
    """InvalidEntryError unless every source is there and none is below the memory's trust.

    `sources` are those of `derived_from` that the writer may see, with their trust; an absent
    and a foreign one are missing alike. `held` are the ids that the stored row names already:
    they may have gone since. `owner` is the application's own word and is above the rule.
    """
    for memory_id in memory.derived_from:
        if memory_id not in sources and memory_id not in held:
            raise InvalidEntryError("derived_from: names an entry that is not there")
    lowest = min(sources.values(), default=Trust.OWNER)
    if memory.trust is not Trust.OWNER and memory.trust > lowest:
        raise InvalidEntryError(
            "trust: must not be above the lowest of the entries it is derived from"
        )


def orphans(
    sources: Mapping[Key, AbstractSet[Key]],
    gone: AbstractSet[Key],
    standing: AbstractSet[Key] = frozenset(),
) -> set[Key]:
    """Which rows fall with those that are gone, since nothing else holds them up.

    `sources` gives, for every row derived from a gone one directly or through others, what it
    is derived from. `standing` are those of them that something else holds up. Rows that hold
    up only each other fall.
    """
    kept = {
        row
        for row, from_ in sources.items()
        if row in standing or any(s not in sources and s not in gone for s in from_)
    }
    upon: dict[Key, list[Key]] = {}
    for row, from_ in sources.items():
        for source in from_:
            upon.setdefault(source, []).append(row)
    found = list(kept)
    while found:  # each row once, however long the chains are
        for row in upon.get(found.pop(), ()):
            if row not in kept and row not in gone:
                kept.add(row)
                found.append(row)
    return set(sources) - kept - gone
