"""What an erasure removed."""

from __future__ import annotations

from dataclasses import dataclass


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
