"""By realm SQLite answers as the in-memory store does, whatever is done and imported."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import MunimentError
from muniment.stores import entries, transfer_reading
from muniment.stores.in_memory import InMemoryStore
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.testing import ManualClock

TENANTS = st.sampled_from(["acme", "acme_"])
ANA = Scope("acme", subject="ana")
REALMS = st.sampled_from(
    [
        Scope("acme"), ANA, ANA, ANA.narrow(session="s1"), Scope("acme", subject="bo"),
        ANA.narrow(agent="helper"), Scope("acme", session="s1"), Scope("acme_"),
    ]
)  # fmt: skip
WIDE = st.sampled_from([Scope("acme"), Scope("acme"), ANA, Scope("acme_")])
WORDS = st.lists(
    st.sampled_from(["tea", "zebra", "Rome", "lives", "emails"]), min_size=1, max_size=3
)
TEXTS = WORDS.map(" ".join)
KINDS = st.sampled_from(["fact", "summary", "decision"])
TRUSTS = st.sampled_from(Trust)
PLACES = st.sampled_from(
    [
        (MemoryScope.PROJECT, "p", None),
        (MemoryScope.TENANT, None, None),
        (MemoryScope.RUN, None, "r"),
        (MemoryScope.USER, "p", "r"),
    ]
)
Store = InMemoryStore | AsyncSQLiteStore
Call = Callable[[Store], Awaitable[Any]]


class EntriesAgree(RuleBasedStateMachine):
    """Each rule asks both stores, which give the same new ids, and compares the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.numbers = itertools.count()
        self.known: list[str] = ["mem_unknown"]
        self.files: list[bytes] = []

    @initialize()
    def open_stores(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        self.patches = [
            mock.patch.object(entries, "new_memory_id", self.new_id),
            mock.patch.object(transfer_reading, "new_memory_ids", self.new_ids),
        ]
        for patch in self.patches:
            patch.start()
        options: dict[str, Any] = {"clock": self.clock, "quota_entries": 40}
        self.stores: tuple[Store, Store] = (
            InMemoryStore(**options),
            AsyncSQLiteStore(self.folder / "memory.db", synchronous="NORMAL", **options),
        )

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return
        for store in self.stores:
            self.runner.run(store.aclose())
        for patch in self.patches:
            patch.stop()
        self.runner.close()
        shutil.rmtree(self.folder)

    def new_id(self) -> str:
        return f"mem_{next(self.numbers):04}"

    def new_ids(self) -> Iterator[str]:
        return iter(self.new_id, None)

    def same(self, call: Call) -> Any:
        first = next(self.numbers)
        answers = []
        for store in self.stores:
            self.numbers = itertools.count(first)
            answers.append(self.runner.run(_answer(store, call)))
        self.numbers = itertools.count(first + 200)
        assert answers[1] == answers[0]
        return answers[0]

    def id(self, choice: int) -> str:
        return self.known[-1 - choice % min(len(self.known), 8)]

    @rule(minutes=st.integers(0, 90))
    def time_passes(self, minutes: int) -> None:
        self.clock.move(minutes=minutes)

    @rule(
        realms=st.lists(REALMS, min_size=1, max_size=4), text=TEXTS, kind=KINDS, trust=TRUSTS,
        expires=st.none() | st.integers(0, 3),
        sources=st.just([]) | st.lists(st.integers(0, 7), max_size=2),
    )  # fmt: skip
    def add(
        self, realms: list[Scope], text: str, kind: str, trust: Trust, expires: int | None,
        sources: list[int],
    ) -> None:  # fmt: skip
        for realm in realms:
            self.add_one(realm, text, kind, trust, expires, sources)

    def add_one(
        self, realm: Scope, text: str, kind: str, trust: Trust, expires: int | None,
        sources: list[int],
    ) -> None:  # fmt: skip
        ends = None if expires is None else self.clock() + timedelta(hours=expires)
        named = [self.id(choice) for choice in sources]
        made = self.same(
            lambda store: store.entries.add(
                realm, text, kind=kind, trust=trust, expires_at=ends, derived_from=named
            )
        )
        self.learn(made)

    def learn(self, made: Any) -> None:
        if isinstance(made, entries.MemoryEntry):
            self.known.append(made.id)

    @rule(
        tenant=st.sampled_from(["acme", "acme_"]), place=PLACES, text=TEXTS, name=st.integers(0, 7)
    )
    def save(
        self, tenant: str, place: tuple[MemoryScope, str | None, str | None], text: str, name: int
    ) -> None:
        width, project, run = place
        owner = MemoryOwner(tenant, project, "ana", "key", "s1", run)
        memory = Memory(self.id(name), width, MemoryType.FACT, owner, text, created_at=self.clock())
        self.same(lambda store: store.memories.save(memory))

    @rule(realm=WIDE, choice=st.integers(0, 7), text=TEXTS, trust=TRUSTS)
    def supersede(self, realm: Scope, choice: int, text: str, trust: Trust) -> None:
        name = self.id(choice)
        self.learn(self.same(lambda store: store.entries.supersede(realm, name, text, trust=trust)))

    @rule(realm=WIDE, choice=st.integers(0, 7))
    def get(self, realm: Scope, choice: int) -> None:
        name = self.id(choice)
        self.same(lambda store: store.entries.get(realm, name))
        self.same(lambda store: store.entries.history(realm, name))

    @rule(realm=REALMS, choices=st.lists(st.integers(0, 7), max_size=3))
    def forget(self, realm: Scope, choices: list[int]) -> None:
        names = [self.id(choice) for choice in choices]
        self.same(lambda store: store.entries.forget(realm, names))

    @rule(
        realm=REALMS, query=TEXTS, kinds=st.none() | st.lists(KINDS, max_size=2),
        trust=st.none() | TRUSTS, old=st.booleans(), expired=st.booleans(),
        budget=st.none() | st.integers(0, 9), k=st.integers(1, 6),
    )  # fmt: skip
    def search(
        self, realm: Scope, query: str, kinds: list[str] | None, trust: Trust | None, old: bool,
        expired: bool, budget: int | None, k: int,
    ) -> None:  # fmt: skip
        async def found(store: Store) -> list[tuple[Any, float]]:
            hits = await store.entries.search(
                realm, query, k=k, kinds=kinds, min_trust=trust, include_superseded=old,
                include_expired=expired, max_tokens=budget,
            )  # fmt: skip
            return [(hit.entry, round(hit.score, 6)) for hit in hits]

        self.same(found)

    @rule(realm=WIDE)
    def export(self, realm: Scope) -> None:
        async def written(store: Store) -> bytes:
            out = io.BytesIO()
            await store.entries.export_stream(realm, out)
            return out.getvalue()

        made = self.same(written)
        if made.count(b"\n") > 1:
            self.files.append(made)

    @precondition(lambda self: self.files)
    @rule(
        realm=WIDE, choice=st.integers(0, 9), trust=TRUSTS, moved=st.booleans(),
        again=st.booleans(), shared=st.booleans(), spoilt=st.lists(st.integers(0, 999), max_size=4),
    )  # fmt: skip
    def bring(
        self, realm: Scope, choice: int, trust: Trust, moved: bool, again: bool, shared: bool,
        spoilt: list[int],
    ) -> None:  # fmt: skip
        given = self.files[-1 - choice % len(self.files)]
        for number in spoilt:
            given = _spoilt(given, number)
        self.same(
            lambda store: store.entries.import_stream(
                realm, io.BytesIO(given), max_trust=trust, rescope=moved,
                skip_duplicates=again, shared=shared,
            )
        )  # fmt: skip

    @rule(realm=REALMS, gone=st.booleans())
    def count_and_sweep(self, realm: Scope, gone: bool) -> None:
        if gone:
            self.same(lambda store: store.sweep_expired(realm))
        self.same(lambda store: store.count(realm))
        self.same(lambda store: store.usage(realm))

    @rule(realm=REALMS, cascade=st.booleans(), rarely=st.integers(0, 3))
    def erase(self, realm: Scope, cascade: bool, rarely: int) -> None:
        if rarely:
            return

        async def erased(store: Store) -> tuple[int, int]:
            result = await store.erase(realm, cascade=cascade)
            return result.entries, result.derived

        self.same(erased)


def _spoilt(data: bytes, number: int) -> bytes:
    """The file with one link, id or field of its entries changed."""
    head, *lines = [json.loads(line) for line in data.splitlines()]
    if lines:
        line = lines[number % len(lines)]
        other = lines[number // 7 % len(lines)]
        field, value = (
            ("superseded_by", other["id"]), ("derived_from", [other["id"], "gone"]),
            ("derived_from", [other["id"]]), ("superseded_by", "gone"), ("trust", "owner"),
            ("scope", other["scope"]), ("text", other["text"]), ("superseded_by", other["id"]),
            ("id", other["id"]), ("text", " "), ("details", None),
        )[number % 11]  # fmt: skip
        line[field] = value
    return b"".join(json.dumps(line).encode() + b"\n" for line in (head, *lines))


async def _answer(store: Store, call: Call) -> Any:
    try:
        return await call(store)
    except MunimentError as error:
        return type(error), str(error)


TestEntriesAgree = EntriesAgree.TestCase
TestEntriesAgree.settings = settings(
    max_examples=40,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
