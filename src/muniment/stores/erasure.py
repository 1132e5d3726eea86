"""What an erasure removed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """Counts of what is gone: memories, conversations, their messages, working states."""

    entries: int
    sessions: int
    messages: int
    working_states: int
