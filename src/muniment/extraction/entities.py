"""From the names in a fact to the knowledge-graph nodes it is linked with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.domain import checks
from muniment.domain.query import ResolvedEntity
from muniment.extraction.secrets import holds_secret

MAX_ENTITIES = 20


def mentions_of(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct usable names in order, at most 20."""
    usable = (name for name in (_usable(name) for name in names) if name is not None)
    return tuple(dict.fromkeys(usable))[:MAX_ENTITIES]


def confident_ids(
    mentions: Sequence[str], resolved: Iterable[ResolvedEntity], *, floor: float
) -> tuple[str, ...]:
    """The node ids of `mentions` at or above `floor`, in order of mention."""
    nodes: dict[str, str] = {}
    for entity in resolved:
        if entity.confidence >= floor:
            nodes.setdefault(entity.mention.casefold(), entity.entity_id)
    found = (nodes.get(mention.casefold()) for mention in mentions)
    return tuple(dict.fromkeys(node for node in found if node is not None))


def _usable(name: str) -> str | None:
    try:
        text = checks.identifier("entity", " ".join(name.split()))
    except ValueError:
        return None
    return None if holds_secret(text) else text
