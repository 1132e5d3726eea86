"""The owner's memories that a conversation may restate or change, as shown to the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner, scope_query_owner
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.extraction.transcript import clip, untagged
from muniment.lexical.words import plain_words
from muniment.ports import MemoryCandidates, MemoryIndex, MemoryRepository

FACT_TYPES = (
    MemoryType.FACT,
    MemoryType.PREFERENCE,
    MemoryType.DECISION,
    MemoryType.EPISODE,
)
READ_SCOPES = (MemoryScope.SESSION, MemoryScope.USER, MemoryScope.PROJECT, MemoryScope.TENANT)
MAX_SHOWN = 24
MAX_SHOWN_CHARACTERS = 600
MAX_TERMS = 8
LABEL_LENGTH = 12
_REFERENCE = re.compile(r"[^\s\[\](){}<>,;:\"'`]+")
_NO_REFERENCE = frozenset({"none", "null", "nil", "n/a", "-"})


@dataclass(frozen=True, slots=True)
class Shown:
    """Memories by the label under which the model saw them."""

    by_label: dict[str, Memory] = field(default_factory=dict[str, Memory])

    @classmethod
    def of(cls, memories: Iterable[Memory]) -> Shown:
        """Each memory under the prefix of its content hash, longer where two would share it."""
        labelled: dict[str, Memory] = {}
        for memory in memories:
            whole = memory.content_hash or content_hash(memory.content, memory.scope)
            length = LABEL_LENGTH
            while whole[:length] in labelled and length < len(whole):
                length += 1
            labelled.setdefault(whole[:length], memory)
        return cls(labelled)

    def text(self) -> str:
        """One line a memory, for the prompt."""
        lines = [
            f"[{label}] ({memory.scope.value}) {_one_line(memory.content)}"
            for label, memory in self.by_label.items()
        ]
        return "\n".join(lines) or "(none)"

    def resolve(self, replaces: str) -> tuple[tuple[Memory, ...], int]:
        """The shown memories that `replaces` names exactly, and how many names were unknown."""
        names = dict.fromkeys(_REFERENCE.findall(replaces))
        given = [name for name in names if name.casefold() not in _NO_REFERENCE]
        found = [self.by_label[name] for name in given if name in self.by_label]
        return tuple(found), len(given) - len(found)


def _one_line(content: str) -> str:
    """`content` so that it can neither begin a line of its own nor close the fence."""
    return untagged(clip(" ".join(content.split()), MAX_SHOWN_CHARACTERS))


async def nearest(
    owner: MemoryOwner,
    text: str,
    *,
    memories: MemoryRepository,
    index: MemoryIndex | None,
    embedding: Sequence[float] | None,
    now: datetime,
) -> tuple[Memory, ...]:
    """The memories valid at `now` that are nearest to `text`, best first, at most 24."""
    scopes = tuple(scope for scope in READ_SCOPES if scope_query_owner(owner, scope))
    if isinstance(memories, MemoryCandidates):
        found = await memories.candidates(
            owner,
            text,
            embedding=embedding,
            scopes=scopes,
            memory_types=FACT_TYPES,
            limit=MAX_SHOWN,
        )
        return tuple(candidate.memory for candidate in found)
    if index is not None:
        return await _indexed(owner, text, scopes, memories, index, embedding, now)
    return await _searched(owner, text, scopes, memories)


async def _indexed(
    owner: MemoryOwner,
    text: str,
    scopes: tuple[MemoryScope, ...],
    memories: MemoryRepository,
    index: MemoryIndex,
    embedding: Sequence[float] | None,
    now: datetime,
) -> tuple[Memory, ...]:
    query = MemoryQuery(owner, scopes, FACT_TYPES, text=text, limit=MAX_SHOWN)
    matches = await index.search_memories(query, embedding)
    rows = [await memories.get(owner, match.memory_id) for match in matches]
    return tuple(row for row in rows if row is not None and believable(row, scopes, now))


def believable(row: Memory, scopes: Sequence[MemoryScope], now: datetime) -> bool:
    """What an index is never believed about: scope, type, validity and expiry."""
    live = row.is_valid_at(now) and not row.is_expired_at(now)
    return live and row.scope in scopes and row.memory_type in FACT_TYPES


async def _searched(
    owner: MemoryOwner, text: str, scopes: tuple[MemoryScope, ...], memories: MemoryRepository
) -> tuple[Memory, ...]:
    """For a repository that knows substrings only: one search a term, most terms first."""
    hits: dict[str, tuple[int, Memory]] = {}
    for term in sorted(set(plain_words(text)), key=lambda word: (-len(word), word))[:MAX_TERMS]:
        query = MemoryQuery(owner, scopes, FACT_TYPES, text=term, limit=MAX_SHOWN)
        for row in await memories.search(query):
            count, _ = hits.get(row.memory_id, (0, row))
            hits[row.memory_id] = (count + 1, row)
    ranked = sorted(hits.values(), key=lambda hit: -hit[0])
    return tuple(row for _, row in ranked[:MAX_SHOWN])
