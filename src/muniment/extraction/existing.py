"""The owner's memories that a conversation may restate or change, as shown to the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from muniment.context.candidates import Candidates, Wanted
from muniment.context.guarded import TurnGuard
from muniment.domain.content import content_hash
from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, scope_query_owner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.extraction.transcript import clip, untagged

READ_SCOPES = (MemoryScope.SESSION, MemoryScope.USER, MemoryScope.PROJECT, MemoryScope.TENANT)
MAX_SHOWN = 24
MAX_SHOWN_CHARACTERS = 600
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
    candidates: Candidates,
    embedding: Sequence[float] | None,
    now: datetime,
    guard: TurnGuard,
) -> tuple[Memory, ...]:
    """The memories valid at `now` that are nearest to `text`, best first, at most 24."""
    wanted = Wanted(
        owner=owner,
        text=text,
        scopes=tuple(scope for scope in READ_SCOPES if scope_query_owner(owner, scope)),
        embedding=embedding,
        messages="off",
        exclude_message_ids=(),
        as_of=None,
        now=now,
        min_trust=Trust.UNTRUSTED,
        limit=MAX_SHOWN,
    )
    found = await candidates.gather(wanted, guard)
    best = sorted(found, key=lambda candidate: -candidate.relevance)
    return tuple(candidate.memory for candidate in best[:MAX_SHOWN])
