"""What an erasure removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from muniment.governance.receipts import ErasureReceipt, erasure_digest


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """Counts of what is gone, and whether its bytes are gone too.

    `entries` the realm's memories, `derived` those that were derived from them alone, then
    conversations, their messages, and working states. `pending` is True while another reader
    keeps the journal from being emptied: `compact` or the next erasure completes it. `receipt`
    can be held against the audit log later; None where there was nothing to erase.
    """

    entries: int
    sessions: int
    messages: int
    working_states: int
    derived: int = 0
    pending: bool = False
    receipt: str | None = None

    @property
    def anything(self) -> bool:
        """There was something to erase."""
        return any((self.entries, self.derived, self.sessions, self.messages, self.working_states))


@dataclass(frozen=True, slots=True)
class Erased:
    """What is gone from the rows: the counts, and the ids that the receipt's digest covers."""

    result: ErasureResult
    digest: str

    @classmethod
    def of(
        cls,
        *,
        entries: Iterable[str],
        derived: Iterable[str],
        sessions: Iterable[str],
        messages: Iterable[str],
        working_states: int,
    ) -> Erased:
        """From the ids of each kind."""
        kinds = [list(ids) for ids in (entries, derived, sessions, messages)]
        result = ErasureResult(
            entries=len(kinds[0]),
            derived=len(kinds[1]),
            sessions=len(kinds[2]),
            messages=len(kinds[3]),
            working_states=working_states,
        )
        return cls(result, erasure_digest(name for ids in kinds for name in ids))

    @property
    def record(self) -> dict[str, Any]:
        """What the audit record says of it: counts and the digest."""
        result = self.result
        return {
            "entries": result.entries,
            "derived": result.derived,
            "sessions": result.sessions,
            "messages": result.messages,
            "working_states": result.working_states,
            "digest": self.digest,
        }

    def received(self, record_id: str) -> ErasureResult:
        """The result with its receipt, where anything was erased."""
        if not self.result.anything:
            return self.result
        return replace(self.result, receipt=str(ErasureReceipt(record_id, self.digest)))


@dataclass(frozen=True, slots=True)
class Removed:
    """What a job removed: the answer, and the audiences whose images must be forgotten."""

    result: ErasureResult
    audiences: frozenset[int]
