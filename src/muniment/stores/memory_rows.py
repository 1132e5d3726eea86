"""What a database writes of a memory, apart from where it writes it."""

from __future__ import annotations

from typing import Any

from muniment.domain.content import content_hash
from muniment.domain.memory import Memory
from muniment.governance.tokens import TokenEstimator
from muniment.lexical.indexing import index_text
from muniment.stores.rows import memory_row, micros, optional_micros

Written = dict[str, Any]


def written(memory: Memory, count: TokenEstimator) -> Written:
    """What a row holds of the memory alone: made before its turn to be written comes."""
    row, indexed = memory_row(memory), index_text(memory.content)
    row["digest"] = digest(memory)
    row["terms"], row["marks"], row["length"] = indexed
    row["tokens"] = count(memory.content)
    return row


def placed(memory: Memory) -> Written:
    """What changes of a row that takes another place in a succession, and the id of the row."""
    return {
        "memory_id": memory.memory_id,
        "valid_from": optional_micros(memory.valid_from),
        "invalid_at": optional_micros(memory.invalid_at),
        "superseded_by": memory.superseded_by,
        "updated_at": micros(memory.updated_at),
    }


def digest(memory: Memory) -> str:
    """What a fact is known again by in its audience."""
    return content_hash(memory.content, memory.scope)
