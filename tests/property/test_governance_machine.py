"""SQLite erases, sweeps, counts and refuses as the in-memory store does, whatever was derived."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muniment.domain.conversation import ConversationMessage
from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import MunimentError
from muniment.governance.receipts import parse_receipt
from muniment.stores.erasure import ErasureResult
from muniment.stores.in_memory import InMemoryStore
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.testing import AsyncStore, ManualClock
from muniment.testing.kit import talk_of

USERS, SESSIONS, IDS = ["ana", "bo"], ["s1", "s2"], ["m1", "m2", "m3", "m4", "m5"]
EVERYONE = [
    MemoryOwner("acme", user_id=user, principal_id="key", session_id=session)
    for user in USERS
    for session in SESSIONS
]
OWNERS = st.sampled_from(EVERYONE)
SCOPES = st.sampled_from([MemoryScope.SESSION, MemoryScope.USER, MemoryScope.TENANT])
REALMS = st.builds(
    Scope,
    st.just("acme"),
    subject=st.sampled_from([None, *USERS]),
    agent=st.sampled_from([None, None, "a"]),
    session=st.sampled_from([None, *SESSIONS]),
)
KINDS = st.sampled_from([MemoryType.FACT, MemoryType.FACT, MemoryType.SUMMARY])
TEXTS = st.sampled_from(["tea", "a zebra", "lives in Rome", "lives in Oslo"])
NAMES = st.lists(st.sampled_from(IDS), max_size=3, unique=True)
Call = Callable[[AsyncStore], Awaitable[Any]]


class StoresGovernAlike(RuleBasedStateMachine):
    """Each rule asks both stores; what anybody sees afterwards must be the same."""

    @initialize()
    def open_stores(self) -> None:
        self.clock = ManualClock()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        quotas = {"quota_entries": 9, "quota_tokens": 30}
        file = self.folder / "memory.db"
        self.stores: tuple[AsyncStore, AsyncStore] = (
            InMemoryStore(clock=self.clock, **quotas),
            AsyncSQLiteStore(file, clock=self.clock, synchronous="NORMAL", **quotas),
        )

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return  # made by the runner only to look at its rules
        for store in self.stores:
            self.runner.run(store.aclose())
        self.runner.close()
        shutil.rmtree(self.folder)

    def same(self, call: Call) -> Any:
        oracle, tested = (self.runner.run(_answer(store, call)) for store in self.stores)
        assert tested == oracle
        return oracle

    def made(self, owner: MemoryOwner, memory_id: str, text: str, **fields: Any) -> Memory:
        kind = fields.pop("kind", MemoryType.FACT)
        scope = fields.pop("scope")
        return Memory(memory_id, scope, kind, owner, text, created_at=self.clock(), **fields)

    @rule(
        owner=OWNERS, name=st.sampled_from(IDS), scope=SCOPES, text=TEXTS, kind=KINDS,
        sources=NAMES, heard=st.lists(st.sampled_from(IDS), max_size=2, unique=True),
        session=st.sampled_from([None, *SESSIONS]), trust=st.sampled_from(Trust),
        agent=st.sampled_from([None, None, "a"]), hours=st.none() | st.integers(1, 3),
    )  # fmt: skip
    def save(
        self, owner: MemoryOwner, name: str, scope: MemoryScope, text: str, kind: MemoryType,
        sources: list[str], heard: list[str], session: str | None, trust: Trust,
        agent: str | None, hours: int | None,
    ) -> None:  # fmt: skip
        over = None if hours is None else self.clock() + timedelta(hours=hours)
        memory = self.made(
            owner, name, text, scope=scope, kind=kind, derived_from=tuple(sources), trust=trust,
            source_session_id=session, source_message_ids=tuple(heard), agent_id=agent,
            expires_at=over,
        )  # fmt: skip
        self.same(lambda store: store.memories.save(memory))

    @rule(
        owner=OWNERS, name=st.sampled_from(IDS), scope=SCOPES, text=TEXTS, sources=NAMES,
        prior=st.none() | st.sampled_from(IDS),
    )  # fmt: skip
    def store_fact(
        self, owner: MemoryOwner, name: str, scope: MemoryScope, text: str, sources: list[str],
        prior: str | None,
    ) -> None:  # fmt: skip
        fact = self.made(owner, name, text, scope=scope, derived_from=tuple(sources))
        self.same(lambda store: store.memories.store_fact(fact, supersedes=prior))

    @rule(owner=OWNERS, name=st.sampled_from(IDS))
    def say(self, owner: MemoryOwner, name: str) -> None:
        role: Any = "user"
        said = [ConversationMessage(name, role, f"message {name}", self.clock())]
        self.same(lambda store: store.conversations.append_messages(talk_of(owner), said))

    @rule(owner=OWNERS, name=st.sampled_from(IDS))
    def delete(self, owner: MemoryOwner, name: str) -> None:
        self.same(lambda store: store.memories.delete(owner, name))

    @rule(owner=OWNERS)
    def delete_session(self, owner: MemoryOwner) -> None:
        self.same(lambda store: store.conversations.delete(talk_of(owner)))

    @rule(realm=REALMS, cascade=st.booleans())
    def erase(self, realm: Scope, cascade: bool) -> None:
        self.same(lambda store: _unnamed(store.erase(realm, cascade=cascade)))

    @rule(realm=REALMS)
    def sweep(self, realm: Scope) -> None:
        self.same(lambda store: store.sweep_expired(realm))

    @rule(hours=st.integers(1, 2))
    def time_passes(self, hours: int) -> None:
        self.clock.move(hours=hours)

    @rule(realm=REALMS, tokens=st.integers(0, 9))
    def usage(self, realm: Scope, tokens: int) -> None:
        for store in self.stores:
            store.note_served(realm.tenant, 1, tokens)
        self.same(lambda store: store.usage(realm))

    @invariant()
    def everybody_sees_the_same(self) -> None:
        if hasattr(self, "stores"):
            for owner in EVERYONE:
                query = MemoryQuery(owner, include_invalid=True, limit=1000)
                self.same(lambda store, query=query: _by_id(store.memories.search(query)))


async def _answer(store: AsyncStore, call: Call) -> Any:
    try:
        return await call(store)
    except MunimentError as error:
        return type(error), str(error)
    except ValueError:
        return ValueError


async def _unnamed(erased: Awaitable[ErasureResult]) -> ErasureResult:
    """The result, its receipt without the record's id: that is each store's own."""
    result = await erased
    return replace(result, receipt=result.receipt and parse_receipt(result.receipt).digest)


async def _by_id(rows: Awaitable[Any]) -> list[Memory]:
    return sorted(await rows, key=lambda memory: (memory.memory_id, memory.scope.width))


TestStoresGovernAlike = StoresGovernAlike.TestCase
TestStoresGovernAlike.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
