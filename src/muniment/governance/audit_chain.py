"""Following the chain of records through a log's bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import BinaryIO

from muniment.governance.audit_record import (
    GENESIS,
    MAX_RECORD_BYTES,
    AuditRecord,
    BrokenRecord,
    read_record,
    record_id,
)


@dataclass(frozen=True, slots=True)
class Tail:
    """Where the records read so far end: `end` and `last_start` are byte offsets."""

    records: int = 0
    last_hash: str = GENESIS
    last_start: int = 0
    end: int = 0

    def after(self, record: AuditRecord, size: int) -> Tail:
        """The tail once `record`, a line of `size` bytes with its line feed, follows."""
        return Tail(record.sequence, record.hash, self.end, self.end + size)


class BrokenChain(Exception):
    """The chain breaks after `sound`, at `line` (from 1, None when no single line is to blame).

    `torn` tells that nothing is wrong but an unfinished last line.
    """

    def __init__(
        self, reason: str, sound: Tail, line: int | None = None, *, torn: bool = False
    ) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.sound = sound
        self.line = line
        self.torn = torn


def follow(
    stream: BinaryIO,
    start: Tail,
    *,
    until: int,
    anchor: Tail | None = None,
    visit: Callable[[AuditRecord], None] = lambda _: None,
) -> Tail:
    """The tail at byte `until`, following the records from `start`; `visit` is shown each.

    BrokenChain at the first fault, or when the log does not continue from `anchor`.
    """
    stream.seek(start.end)
    tail = start
    while tail.end < until:
        tail = _next(stream, tail, until, visit)
        if anchor and tail.records == anchor.records and tail.last_hash != anchor.last_hash:
            raise BrokenChain("records that were there are replaced", tail, tail.records)
    if anchor and tail.records < anchor.records:
        raise BrokenChain("records that were there are cut off", tail)
    return tail


def ids_among(stream: BinaryIO, start: Tail, *, until: int, wanted: Collection[str]) -> set[str]:
    """Those of the `wanted` record ids that a sound log holds between `start` and `until`."""
    found = set[str]()
    stream.seek(start.end)
    at = start.end
    while at < until and len(found) < len(wanted):
        line = stream.readline(MAX_RECORD_BYTES + 1)
        at += len(line)
        held = record_id(line)
        if held is not None and held in wanted:
            found.add(held)
    return found


def still_ends_with(stream: BinaryIO, tail: Tail) -> bool:
    """Whether the last record that `tail` knows still stands in its place."""
    if tail.records == 0:
        return True
    stream.seek(tail.last_start)
    line = stream.read(tail.end - tail.last_start)
    # The hash covers everything else on the line, so a later `verify` settles the rest.
    return line.endswith(b"\n") and f'"hash":"{tail.last_hash}"'.encode() in line


def _next(stream: BinaryIO, tail: Tail, until: int, visit: Callable[[AuditRecord], None]) -> Tail:
    number = tail.records + 1
    line = stream.readline(min(MAX_RECORD_BYTES + 1, until - tail.end))
    if not line.endswith(b"\n"):
        torn = len(line) <= MAX_RECORD_BYTES
        raise BrokenChain(_unfinished(torn), tail, number, torn=torn)
    try:
        record = read_record(line[:-1], sequence=number, previous_hash=tail.last_hash)
    except BrokenRecord as broken:
        raise BrokenChain(str(broken), tail, number) from None
    visit(record)
    return tail.after(record, len(line))


def _unfinished(torn: bool) -> str:
    return "the last line is torn" if torn else f"it is longer than {MAX_RECORD_BYTES} bytes"
