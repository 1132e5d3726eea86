"""What calls cost, counted and not timed: others' rows cost a caller nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from muniment import MemoryOwner, Scope, open_memory
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.realm import RealmKey
from muniment.domain.scope import MemoryScope
from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.evidence.eligibility import Filters
from muniment.evidence.gathering import gather
from muniment.evidence.query import analyze
from muniment.evidence.shortlist import MOST_CANDIDATES
from muniment.evidence.vectors import pack_vector
from muniment.lexical.indexing import index_text
from muniment.stores.sqlite import AsyncSQLiteStore, engine
from muniment.stores.sqlite.migrate import migrate
from muniment.stores.sqlite.statements import SQL, covered

OWN, FOREIGN = 40, 600
NOISE = 12
"""Steps; a scan of what is foreign would take thousands."""

Call = Callable[[AsyncSQLiteStore], Awaitable[Any]]


class Meter:
    """Steps of SQLite's virtual machine while it is on."""

    def __init__(self) -> None:
        self.steps = 0
        self.on = False

    def __call__(self, event: dict[str, Any]) -> None:
        if self.on:
            self.steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self.steps, self.on = 0, True
        yield
        self.on = False


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    made, connect = Meter(), engine.connect

    def metered(*args: Any, **options: Any) -> apsw.Connection:
        connection = connect(*args, **options)
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, made)
        return connection

    monkeypatch.setattr(engine, "connect", metered)
    return made


async def _filled(store: AsyncSQLiteStore, tenant: str, rows: int) -> None:
    owner = MemoryOwner(tenant, user_id="ana")
    for number in range(rows):
        text = f"tea number {number} in the garden"
        made = Memory(f"m{number}", MemoryScope.USER, MemoryType.FACT, owner, text)
        await store.memories.save(made)


async def _recall(store: AsyncSQLiteStore) -> None:
    await store.memories.candidates(
        MemoryOwner("acme", user_id="ana"),
        "tea in the garden",
        scopes=tuple(MemoryScope),
        memory_types=tuple(MemoryType),
        limit=10,
    )


async def _search(store: AsyncSQLiteStore) -> None:
    await store.entries.search(Scope("acme", subject="ana"), "tea in the garden")


async def _count(store: AsyncSQLiteStore) -> None:
    await store.count(Scope("acme", subject="ana"))


async def _steps(path: Path, meter: Meter, call: Call, foreign: int) -> tuple[int, int]:
    """Of a first call after opening, and of the same again."""
    async with AsyncSQLiteStore(path) as store:
        await _filled(store, "acme", OWN)
        for tenant in range(foreign // OWN):
            await _filled(store, f"other{tenant}", OWN)
    async with AsyncSQLiteStore(path) as store:
        found = []
        for _ in range(2):
            with meter.running():
                await call(store)
            found.append(meter.steps)
    return found[0], found[1]


@pytest.mark.parametrize("call", [_recall, _search, _count])
async def test_a_call_beside_foreign_rows_costs_what_it_costs_alone(
    call: Call, tmp_path: Path, meter: Meter
) -> None:
    alone = await _steps(tmp_path / "alone.db", meter, call, 0)
    among = await _steps(tmp_path / "among.db", meter, call, FOREIGN)
    # Not to the last step: an index with more entries may be a page deeper.
    assert all(0 < there <= here + NOISE for here, there in zip(alone, among, strict=True))


async def test_images_hold_the_callers_rows_alone(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "a.db") as store:
        await _filled(store, "acme", OWN)
        await _filled(store, "other", OWN)
        await _recall(store)
        held = [len(image.corpus) for image in store._core.images._kept._images.values()]
        assert sum(held) == OWN


async def test_a_second_recall_reads_no_row_again(tmp_path: Path, meter: Meter) -> None:
    first, second = await _steps(tmp_path / "a.db", meter, _recall, 0)
    assert second < first


async def test_recall_hydrates_no_more_than_it_ranks(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/a.db", embedder=None) as memory:
        await _filled(memory.store, "acme", OWN)
        owner = MemoryOwner("acme", user_id="ana")
        found = await memory.store.memories.candidates(
            owner, "tea", scopes=tuple(MemoryScope), memory_types=tuple(MemoryType), limit=5
        )
        assert len(found) == 5


@pytest.mark.parametrize("embedding", [None, [1.0, 0.0]])
def test_a_learned_ranking_weighs_only_so_many_candidates(embedding: list[float] | None) -> None:
    corpus = Corpus()
    corpus.upsert(
        CorpusRow(
            n,
            MESSAGE,
            index_text(f"tea {n % 7} garden"),
            float(n),
            n,
            session="s",
            vector=pack_vector([1.0, n % 11]),
        )
        for n in range(3 * MOST_CANDIDATES)
    )
    asked = analyze("tea garden")
    found = gather([corpus, corpus], asked, embedding=embedding, filters=Filters(9e9))
    assert len(found) == MOST_CANDIDATES * (2 if embedding is None else 1)


def test_which_rows_are_weighed_does_not_depend_on_where_they_stand() -> None:
    rows = [
        CorpusRow(n, MESSAGE, index_text("tea in the garden"), float(n), n)
        for n in range(4 * MOST_CANDIDATES)
    ]
    kept = []
    for order in (rows, rows[::-1], [*rows[700:], *rows[:700]]):
        corpus = Corpus()
        corpus.upsert(order)
        found = gather([corpus], analyze("tea"), embedding=None, filters=Filters(9e9))
        kept.append(np.sort(found.values("keys")).tolist())
    assert kept[0] == kept[1] == kept[2]


@pytest.mark.parametrize("name", [name for name in SQL if ":seqs" in SQL[name]])
def test_rows_that_are_known_by_number_are_read_by_number(name: str) -> None:
    connection = apsw.Connection(":memory:")
    migrate(connection)
    statement = covered(name, RealmKey("acme", "ana"))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", _NoValues())
    table = {"m", "memory"}
    steps = [row[3] for row in plan if table & set(row[3].split())]
    assert steps
    assert all("USING INTEGER PRIMARY KEY" in step for step in steps)


class _NoValues(dict[str, None]):
    def __missing__(self, key: str) -> None:
        return None
