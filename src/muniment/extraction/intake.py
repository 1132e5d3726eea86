"""Taking proposed facts in, one by one: check, compare, store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from muniment.context.policy import MemoryPolicy
from muniment.domain.content import says_something
from muniment.domain.memory import Memory
from muniment.domain.trust import Trust
from muniment.extraction.counts import ExtractionCounts
from muniment.extraction.dedup import Restatements, echoed
from muniment.extraction.existing import Shown
from muniment.extraction.facts import Statement, Turn, extracted_memory
from muniment.extraction.scoping import clamp_importance, read_type, written_scope
from muniment.extraction.secrets import holds_secret
from muniment.extraction.storing import FactWriter
from muniment.extraction.supersession import Replacement, replacement
from muniment.ports import MemoryRepository
from muniment.replies import ExtractedFact

MAX_FACT_CHARACTERS = 4_000
CONFLICTS_WITH = "conflicts_with"


class FactIntake:
    """The facts of one turn: what is stored joins what later facts of it are compared with."""

    def __init__(
        self,
        *,
        policy: MemoryPolicy,
        memories: MemoryRepository,
        restatements: Restatements,
        writer: FactWriter,
        turn: Turn,
        shown: Shown,
        counts: ExtractionCounts,
    ) -> None:
        self._policy = policy
        self._memories = memories
        self._restatements = restatements
        self._writer = writer
        self._turn = turn
        self._shown = shown
        self._counts = counts
        self._known: list[Memory] = list(shown.by_label.values())

    async def take(self, fact: ExtractedFact, entity_ids: tuple[str, ...]) -> Memory | None:
        """The memory stored for `fact`, or None where it is dropped or known.

        Raises what the store raises, but for an entry that the store alone refuses.
        """
        self._counts.proposed += 1
        statement = self._checked(fact, entity_ids)
        if statement is None:
            return None
        try:
            known = echoed(statement.content, statement.scope, self._known)
            if known is not None:
                await self._known_again(known)
                return None
            return await self._store(statement, fact.replaces)
        except ValueError:
            self._counts.dropped_invalid += 1
            return None

    def _checked(self, fact: ExtractedFact, entity_ids: tuple[str, ...]) -> Statement | None:
        content = fact.content.strip()
        importance = clamp_importance(fact.importance)
        if not says_something(content):
            self._counts.dropped_blank += 1
        elif len(content) > MAX_FACT_CHARACTERS:
            self._counts.dropped_invalid += 1
        elif importance < self._policy.extraction_min_importance:
            self._counts.dropped_unimportant += 1
        elif holds_secret(content):
            self._counts.dropped_secret += 1
        else:
            scope = written_scope(fact.scope, self._turn.owner, self._policy)
            kind = read_type(fact.memory_type)
            return Statement(content, kind, scope, importance, entity_ids)
        return None

    async def _store(self, statement: Statement, replaces: str) -> Memory | None:
        change = replacement(
            replaces,
            shown=self._shown,
            owner=self._turn.owner,
            scope=statement.scope,
            trust=Trust.MODEL,
        )
        self._counts.ignored_references += change.ignored
        memory = extracted_memory(statement, self._turn, self._policy, _conflict(change))
        embedding = await self._restatements.embedding(memory.content)
        known = await self._already(memory, embedding, change)
        if known is not None:
            await self._known_again(known)
            return None
        stored = await self._writer.write(memory, supersedes=change.supersedes, embedding=embedding)
        if not stored.created:
            self._counts.duplicates += 1
            return None
        self._note(stored.memory, change, closed=stored.superseded)
        return stored.memory

    async def _known_again(self, known: Memory) -> None:
        self._counts.duplicates += 1
        await self._writer.repair(known)

    async def _already(
        self, memory: Memory, embedding: Sequence[float] | None, change: Replacement
    ) -> Memory | None:
        """What this turn gave before (even if closed by now), or what `memory` restates."""
        async with asyncio.timeout(self._policy.call_timeout_seconds):
            before = await self._memories.get(memory.owner, memory.memory_id)
        if before is not None:
            return before
        touched = [prior for prior in (change.supersedes, change.conflicts) if prior is not None]
        return await self._restatements.of(
            memory, embedding, now=self._turn.now, passing_over=touched
        )

    def _note(self, stored: Memory, change: Replacement, *, closed: str | None) -> None:
        self._known.append(stored)
        self._counts.stored += 1
        self._counts.conflicts += change.conflicts is not None
        if change.supersedes is None:
            return
        self._counts.superseded += closed is not None
        self._counts.ignored_references += closed is None
        self._known = [row for row in self._known if row is not change.supersedes]
        for label, row in self._shown.by_label.items():
            if row is change.supersedes:
                self._shown.by_label[label] = replace(row, superseded_by=stored.memory_id)


def _conflict(change: Replacement) -> dict[str, Any]:
    return {CONFLICTS_WITH: change.conflicts.memory_id} if change.conflicts is not None else {}
