"""What an import has read as it is staged: many rows a statement, while the next are read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import apsw

from muniment.domain.content import content_hash
from muniment.governance.tokens import TokenEstimator
from muniment.lexical.indexing import index_text
from muniment.stores.driven import Finished
from muniment.stores.rows import dumps, micros
from muniment.stores.sqlite.core import Core
from muniment.stores.sqlite.statements import SQL
from muniment.stores.transfer_reading import Incoming
from muniment.stores.transfer_talks import Said, Talk, talk_row

_AT_ONCE = 200
"""Rows a statement. SQLite runs one without Python's lock, which the next batch is made under. The
driver prepares one of more than 16,384 characters anew each time."""

_LINES_BETWEEN_TURNS = 64
"""The thread that writes needs that lock for an instant between statements. It would wait 5 ms
for it each time, longer than a statement takes, if it were not offered in between."""

_WIDTH = SQL["stage_memory"].count("?")
_CONTENT, _VECTOR = _WIDTH - 2, _WIDTH - 1
"""Where they stand among the values of `stage_memory`."""


class Batch(NamedTuple):
    """Some lines of a file as rows; `linked` where an entry names another.

    `entries` are the values of `stage_memory`, those of one entry after those of another.
    """

    entries: list[Any]
    talks: list[dict[str, Any]]
    linked: bool

    @classmethod
    def of(
        cls, lines: Iterable[Incoming | Talk | Said], number: int, begun: int, count: TokenEstimator
    ) -> Batch:
        """The rows of import `number`, staged at `begun`."""
        entries: list[Any] = []
        talks: list[dict[str, Any]] = []
        linked = False
        lines = iter(lines)
        while some := list(islice(lines, _LINES_BETWEEN_TURNS)):
            read = [one for one in some if isinstance(one, Incoming)]
            for values in _entry_rows(read, number, begun, count):
                entries += values
            fixed = {"import": number, "begun": begun}
            talks += [talk_row(one, fixed) for one in some if not isinstance(one, Incoming)]
            linked = linked or any(one.superseded_by or one.derived_from for one in read)
            time.sleep(0)
        return cls(entries, talks, linked)

    @property
    def texts(self) -> list[str]:
        """What is embedded of the entries, then of the talks."""
        return self.entries[_CONTENT::_WIDTH] + [row["content"] for row in self.talks]

    def __len__(self) -> int:
        return len(self.entries) // _WIDTH + len(self.talks)


@dataclass(slots=True)
class Staged:
    """What of an import is staged; `linked` where an entry names another."""

    count: int = 0
    linked: bool = False


class Staging:
    """Stages batches, each while the next is prepared. Not public."""

    def __init__(self, core: Core) -> None:
        self.staged = Staged()
        self._core = core
        self._last: Finished[None] | None = None

    async def put(self, batch: Batch) -> None:
        """Stage a batch once the one before it is; return before that is done."""
        core = self._core
        made = await core.embedder.many(batch.texts)

        def job(db: apsw.Connection) -> None:
            _stage(db, batch, core.admit(db, made))

        await self.settled()
        writer = await core.engine.open_async()
        self.staged.count += len(batch)
        self.staged.linked |= batch.linked
        self._last = Finished(writer.submit(job))

    async def settled(self) -> None:
        """Wait for the last batch."""
        last, self._last = self._last, None
        if last is not None:
            await last


def _stage(db: apsw.Connection, batch: Batch, vectors: Sequence[bytes | None]) -> None:
    values, entries = batch.entries, len(batch) - len(batch.talks)
    values[_VECTOR::_WIDTH] = vectors[:entries]
    for talk, vector in zip(batch.talks, vectors[entries:], strict=True):
        talk["vector"] = vector
    for start in range(0, len(values), _AT_ONCE * _WIDTH):
        some = values[start : start + _AT_ONCE * _WIDTH]
        db.execute(_rows_at_once(len(some) // _WIDTH), some)
    db.executemany(SQL["stage_talk"], batch.talks)


@cache
def _rows_at_once(count: int) -> str:
    head, _, row = SQL["stage_memory"].removesuffix(";").rpartition("VALUES ")
    return f"{head}VALUES {','.join([row.replace(' ', '')] * count)}"


def _entry_rows(
    entries: Sequence[Incoming], number: int, begun: int, count: TokenEstimator
) -> Iterator[tuple[Any, ...]]:
    """The values of `stage_memory` for each."""
    # Step by step, not entry by entry: what a step works with stays near the processor.
    indexed = [index_text(entry.memory.content) for entry in entries]
    digests = [content_hash(entry.memory.content, entry.place.scope) for entry in entries]
    for entry, index, digest in zip(entries, indexed, digests, strict=True):
        yield number, entry.line, begun, digest, *index, count(entry.memory.content)
        yield _columns(entry)


def _columns(entry: Incoming) -> tuple[Any, ...]:
    memory, place, owner = entry.memory, entry.place, entry.place.owner
    created = micros(memory.created_at)
    changed = created if memory.updated_at is memory.created_at else micros(memory.updated_at)
    expires, begins, ends = memory.expires_at, memory.valid_from, memory.invalid_at
    derived, said, things = entry.derived_from, memory.source_message_ids, memory.entity_ids
    return (
        entry.old_id, entry.superseded_by, place.audience, dumps(derived) if derived else "[]",
        place.realm.session, memory.memory_id, place.scope, memory.memory_type,
        owner.tenant_id, owner.project_id, owner.user_id, owner.principal_id,
        owner.session_id, owner.run_id, memory.agent_id,
        dumps(memory.metadata) if memory.metadata else "{}", memory.importance, created, changed,
        expires and micros(expires), begins and micros(begins), ends and micros(ends),
        memory.source_session_id, dumps(said) if said else "[]", dumps(things) if things else "[]",
        memory.trust.rank, memory.source, memory.content, None,
    )  # fmt: skip
