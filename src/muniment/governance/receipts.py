"""Erasure receipts: what an erasure hands out, to be held against the audit log later."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_PREFIX = "muniment-erasure"
_RECEIPT = re.compile(rf"{_PREFIX}:([^:\s]+):([0-9a-f]{{64}})")


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """The audit record's id, and the digest of the erased ids that this record holds."""

    record_id: str
    digest: str

    def __str__(self) -> str:
        return f"{_PREFIX}:{self.record_id}:{self.digest}"


def erasure_digest(ids: Iterable[str]) -> str:
    """SHA-256, as hex, over the sorted ids as a JSON list in ASCII without blanks.

    The ids are those of the memories, derived ones included, the sessions and the messages;
    one that occurs twice counts twice.
    """
    listed = json.dumps(sorted(ids), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(listed.encode("ascii")).hexdigest()


def parse_receipt(text: str) -> ErasureReceipt:
    """The parts of a receipt; ValueError for anything else."""
    match = _RECEIPT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"receipt: must look like {_PREFIX}:<record id>:<64 hexadecimal digits>")
    return ErasureReceipt(match[1], match[2])
