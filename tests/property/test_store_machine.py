"""Every store answers as the in-memory one does, whatever is done, under several owners."""

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
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

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
from muniment.stores.postgres import PostgresStore
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.testing import AsyncStore, ManualClock
from muniment.testing.kit import talk_of
from tests.servers.databases import DATABASES

OWNERS = st.builds(
    MemoryOwner,
    st.sampled_from(["acme", "acme_"]),
    project_id=st.sampled_from([None, "p"]),
    user_id=st.sampled_from(["ana", "bo"]),
    principal_id=st.just("key"),
    session_id=st.sampled_from(["s1", "s2"]),
    run_id=st.sampled_from([None, "r"]),
)
IDS = st.sampled_from(["m1", "m2", "m3", "m4"])
WORDS = st.lists(
    st.sampled_from(["tea", "zebra", "Rome", "lives", "in", "emails"]), min_size=1, max_size=4
)
TEXTS = WORDS.map(" ".join)
SCOPES = st.sampled_from(MemoryScope)
SOME_SCOPES = st.lists(SCOPES, unique=True, max_size=3).map(tuple)
HOURS = st.none() | st.integers(-30, 30)
TRUSTS = st.none() | st.sampled_from(Trust)
REALMS = st.builds(
    Scope,
    st.sampled_from(["acme", "acme_"]),
    subject=st.sampled_from([None, "ana"]),
    session=st.sampled_from([None, "s1"]),
)
Call = Callable[[AsyncStore], Awaitable[Any]]


class StoresAgree(RuleBasedStateMachine):
    """Each rule asks both stores and compares answers, refusals included."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.cursors: list[tuple[tuple[str, str], tuple[str, str]]] = []

    @initialize()
    def open_stores(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        self.stores: tuple[AsyncStore, AsyncStore] = (
            InMemoryStore(clock=self.clock),
            self.tested(),
        )

    def tested(self) -> AsyncStore:
        """The store that is compared with the in-memory one."""
        return AsyncSQLiteStore(self.folder / "memory.db", clock=self.clock, synchronous="NORMAL")

    def writer(self, owner: MemoryOwner, scope: MemoryScope) -> MemoryOwner:
        """Who writes a memory of this scope."""
        return owner

    def deleter(self, owner: MemoryOwner) -> MemoryOwner:
        """Who deletes."""
        return owner

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return  # made by the runner only to look at its rules
        for store in self.stores:
            self.runner.run(store.aclose())
        self.runner.close()
        shutil.rmtree(self.folder)

    def answers(self, call: Call) -> tuple[Any, Any]:
        oracle, tested = (self.runner.run(_answer(store, call)) for store in self.stores)
        return oracle, tested

    def same(self, call: Call) -> None:
        oracle, tested = self.answers(call)
        assert tested == oracle

    def instant(self, hours: int | None) -> Any:
        return None if hours is None else self.clock() + timedelta(hours=hours)

    def memory(self, owner: MemoryOwner, memory_id: str, scope: MemoryScope, text: str) -> Memory:
        return Memory(memory_id, scope, MemoryType.FACT, owner, text, created_at=self.clock())

    @rule(hours=st.integers(-1, 12))
    def time_passes(self, hours: int) -> None:
        self.clock.move(hours=hours)

    @rule(
        owner=OWNERS, memory_id=IDS, scope=SCOPES, text=TEXTS,
        expires=st.none() | st.integers(1, 9), start=HOURS, length=st.none() | st.integers(1, 30),
        trust=st.sampled_from(Trust),
        kind=st.sampled_from([MemoryType.FACT, MemoryType.SUMMARY, MemoryType.PREFERENCE]),
    )  # fmt: skip
    def save(
        self, owner: MemoryOwner, memory_id: str, scope: MemoryScope, text: str,
        expires: int | None, start: int | None, length: int | None, trust: Trust, kind: MemoryType,
    ) -> None:  # fmt: skip
        begins = self.instant(start)
        ends = None if length is None else (begins or self.clock()) + timedelta(hours=length)
        memory = Memory(
            memory_id, scope, kind, self.writer(owner, scope), text, created_at=self.clock(),
            trust=trust,
            expires_at=self.instant(expires), valid_from=begins, invalid_at=ends,
        )  # fmt: skip
        self.same(lambda store: store.memories.save(memory))

    @rule(owner=OWNERS, memory_id=IDS, scope=SCOPES, text=TEXTS, start=HOURS, prior=st.none() | IDS)
    def store_fact(
        self, owner: MemoryOwner, memory_id: str, scope: MemoryScope, text: str,
        start: int | None, prior: str | None,
    ) -> None:  # fmt: skip
        plain = self.memory(owner, memory_id, scope, text)
        begins = self.instant(start)
        fact = Memory(
            memory_id, scope, MemoryType.FACT, self.writer(owner, scope), text,
            created_at=plain.created_at, valid_from=begins,
        )  # fmt: skip
        self.same(lambda store: store.memories.store_fact(fact, supersedes=prior))

    @rule(owner=OWNERS, memory_id=IDS)
    def get(self, owner: MemoryOwner, memory_id: str) -> None:
        self.same(lambda store: store.memories.get(owner, memory_id))

    @rule(owner=OWNERS, memory_id=IDS)
    def delete(self, owner: MemoryOwner, memory_id: str) -> None:
        self.same(lambda store: store.memories.delete(self.deleter(owner), memory_id))

    @rule(owner=OWNERS, memory_id=IDS)
    def history(self, owner: MemoryOwner, memory_id: str) -> None:
        self.same(lambda store: _tuple(store.history(owner, memory_id)))

    @rule(owner=OWNERS, scopes=SOME_SCOPES, as_of=HOURS, every=st.booleans(), trust=TRUSTS)
    def everything_visible(
        self, owner: MemoryOwner, scopes: tuple[MemoryScope, ...], as_of: int | None,
        every: bool, trust: Trust | None,
    ) -> None:  # fmt: skip
        query = MemoryQuery(
            owner, scopes, limit=1000, as_of=self.instant(as_of),
            include_invalid=every, min_trust=trust,
        )  # fmt: skip
        self.same(lambda store: _unordered(store.memories.search(query)))

    @rule(owner=OWNERS, scopes=SOME_SCOPES, text=TEXTS, as_of=HOURS, limit=st.integers(1, 5))
    def search(
        self, owner: MemoryOwner, scopes: tuple[MemoryScope, ...], text: str,
        as_of: int | None, limit: int,
    ) -> None:  # fmt: skip
        query = MemoryQuery(owner, scopes, text=text, limit=limit, as_of=self.instant(as_of))
        self.same(lambda store: _tuple(store.memories.search(query)))

    @rule(
        owner=OWNERS, scopes=SOME_SCOPES, text=TEXTS, as_of=HOURS, trust=TRUSTS,
        messages=st.sampled_from(["off", "session", "user"]), without=st.lists(IDS, max_size=1),
    )  # fmt: skip
    def candidates(
        self, owner: MemoryOwner, scopes: tuple[MemoryScope, ...], text: str, as_of: int | None,
        trust: Trust | None, messages: str, without: list[str],
    ) -> None:  # fmt: skip
        oracle, tested = self.answers(
            lambda store: store.memories.candidates(
                owner, text, scopes=scopes, memory_types=tuple(MemoryType), messages=messages,
                session_id=owner.session_id, exclude_message_ids=without,
                as_of=self.instant(as_of), min_trust=trust,
            )
        )  # fmt: skip
        assert [hit.memory for hit in tested] == [hit.memory for hit in oracle]
        for mine, other in zip(tested, oracle, strict=True):
            assert abs(mine.relevance - other.relevance) < 1e-6

    @rule(owner=OWNERS, ids=st.lists(IDS, min_size=1, max_size=3), text=TEXTS)
    def append(self, owner: MemoryOwner, ids: list[str], text: str) -> None:
        role: Any = "user"
        messages = [ConversationMessage(name, role, text, self.clock()) for name in ids]
        self.same(lambda store: store.conversations.append_messages(talk_of(owner), messages))

    @rule(owner=OWNERS, after=st.none() | IDS, limit=st.integers(1, 3))
    def read(self, owner: MemoryOwner, after: str | None, limit: int) -> None:
        talk = talk_of(owner)
        self.same(lambda s: _tuple(s.conversations.recent_messages(talk, limit=limit)))
        self.same(
            lambda s: _tuple(
                s.conversations.messages_after(talk, after_message_id=after, limit=limit)
            )
        )

    @rule(owner=OWNERS, kind=st.sampled_from(["chat", "agent"]), title=st.none() | TEXTS)
    def create(self, owner: MemoryOwner, kind: str, title: str | None) -> None:
        self.same(lambda s: s.conversations.create(talk_of(owner), kind=kind, title=title))

    @rule(owner=OWNERS, title=st.none() | TEXTS)
    def titles(self, owner: MemoryOwner, title: str | None) -> None:
        talk = talk_of(owner)
        self.same(lambda s: s.conversations.set_generated_title(talk, title=title or " "))
        self.same(lambda s: s.conversations.get_title(talk))

    @rule(owner=OWNERS, title=st.none() | TEXTS)
    def rename(self, owner: MemoryOwner, title: str | None) -> None:
        self.same(lambda s: s.conversations.rename_conversation(talk_of(owner), title=title))

    @rule(owner=OWNERS)
    def clear(self, owner: MemoryOwner) -> None:
        self.same(lambda store: store.conversations.clear_messages(talk_of(owner)))

    @rule(owner=OWNERS)
    def delete_session(self, owner: MemoryOwner) -> None:
        self.same(lambda store: store.conversations.delete(talk_of(owner)))

    @rule(owner=OWNERS, kind=st.sampled_from([None, "chat"]), limit=st.integers(1, 2))
    def first_page(self, owner: MemoryOwner, kind: str | None, limit: int) -> None:
        self.page((owner.tenant_id, owner.user_id or ""), kind, limit, (None, None))

    @rule(data=st.data())
    def next_page(self, data: st.DataObject) -> None:
        if self.cursors:
            whose, cursors = data.draw(st.sampled_from(self.cursors))
            self.page(whose, None, 2, cursors)

    def page(
        self, whose: tuple[str, str], kind: str | None, limit: int,
        cursors: tuple[str | None, str | None],
    ) -> None:  # fmt: skip
        oracle, tested = (
            self.runner.run(
                store.conversations.list_conversations(
                    tenant_id=whose[0], user_id=whose[1], kind=kind, cursor=cursor, limit=limit
                )
            )
            for store, cursor in zip(self.stores, cursors, strict=True)
        )
        assert tested.conversations == oracle.conversations
        assert (tested.next_cursor is None) == (oracle.next_cursor is None)
        if oracle.next_cursor and tested.next_cursor and kind is None:
            self.cursors.append((whose, (oracle.next_cursor, tested.next_cursor)))

    @rule(owner=OWNERS, value=st.integers(), ttl=st.integers(0, 7200))
    def put_state(self, owner: MemoryOwner, value: int, ttl: int) -> None:
        self.same(lambda store: store.working.put(owner, {"value": value}, ttl_seconds=ttl))

    @rule(owner=OWNERS)
    def get_state(self, owner: MemoryOwner) -> None:
        self.same(lambda store: store.working.get(owner))

    @rule(realm=REALMS)
    def count(self, realm: Scope) -> None:
        self.same(lambda store: store.count(realm))

    @rule(realm=REALMS)
    def erase(self, realm: Scope) -> None:
        self.same(lambda store: _unnamed(store.erase(realm)))


async def _answer(store: AsyncStore, call: Call) -> Any:
    try:
        return await call(store)
    except MunimentError as error:
        return type(error)
    except ValueError:
        return ValueError


async def _unnamed(erased: Awaitable[ErasureResult]) -> ErasureResult:
    """The result, its receipt without the record's id: that is each store's own."""
    result = await erased
    digest = result.receipt and parse_receipt(result.receipt).digest
    return replace(result, receipt=digest, pending=False)  # bytes are another test's


async def _tuple(rows: Awaitable[Any]) -> tuple[Any, ...]:
    return tuple(await rows)


async def _unordered(rows: Awaitable[Any]) -> Any:
    found = list(await rows)
    assert [m.updated_at for m in found] == sorted((m.updated_at for m in found), reverse=True)
    return sorted(found, key=repr)


class PostgresAgrees(StoresAgree):
    """The same on PostgreSQL, where a GLOBAL memory is its writer's tenant's to change alone."""

    def tested(self) -> AsyncStore:
        self.url = DATABASES.lend()
        return PostgresStore(self.url, clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "url"):
            DATABASES.give_back(self.url)

    def writer(self, owner: MemoryOwner, scope: MemoryScope) -> MemoryOwner:
        return replace(owner, tenant_id="acme") if scope is MemoryScope.GLOBAL else owner

    def deleter(self, owner: MemoryOwner) -> MemoryOwner:
        return replace(owner, tenant_id="acme")


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


TestStoresAgree = StoresAgree.TestCase
TestStoresAgree.settings = _settings(25)
TestPostgresAgrees = PostgresAgrees.TestCase
TestPostgresAgrees.settings = _settings(15)
