"""The facade and its tiers: who may do what, copies, limits, what is not configured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from muniment import (
    ConversationIdentity,
    ConversationTurn,
    InMemoryWorkingMemoryStore,
    LongTermMemory,
    MemoryConfigurationError,
    MemoryManager,
    MemoryManagerConfig,
    MemoryOwner,
    MemoryQuery,
    MemoryScope,
    MemoryScopeError,
    ShortTermMemory,
    WorkingMemory,
)
from muniment.tiers.short_term import MessageTurns
from tests.doubles.turn import NOW, OWNER, Messages, Repository, clock, fact

RUN = MemoryOwner("acme", "apollo", "ana", "token-1", "monday", "run-1")


class Turns:
    def __init__(self) -> None:
        self.held: list[ConversationTurn] = []

    async def recent(
        self, identity: ConversationIdentity, *, limit: int = 2
    ) -> Sequence[ConversationTurn]:
        return self.held[-limit:]

    async def append(self, identity: ConversationIdentity, turn: ConversationTurn) -> None:
        self.held.append(turn)

    async def clear(self, identity: ConversationIdentity) -> None:
        self.held.clear()


def manager_of(*memories: Any) -> MemoryManager:
    return MemoryManager(
        ShortTermMemory(Turns()),
        WorkingMemory(InMemoryWorkingMemoryStore(clock=clock)),
        LongTermMemory(Repository(*memories)),
    )


async def test_a_tier_that_is_not_configured_is_an_error_of_configuration() -> None:
    bare = MemoryManager()
    query = MemoryQuery(OWNER, text="tea")
    for call in (
        bare.recent(OWNER),
        bare.append(OWNER, ConversationTurn("a", "b")),
        bare.clear(OWNER),
        bare.scratch(RUN),
        bare.update(RUN, {}),
        bare.clear_working(RUN),
        bare.save(OWNER, fact("a", "tea")),
        bare.get(OWNER, "a"),
        bare.search(OWNER, query),
        bare.delete(OWNER, "a"),
        bare.snapshot(OWNER, query=query),
    ):
        with pytest.raises(MemoryConfigurationError):
            await call
    empty = await bare.snapshot(OWNER)
    assert (empty.recent_turns, dict(empty.working_state), empty.memories) == ((), {}, ())


async def test_turns_come_back_newest_last_two_by_default() -> None:
    manager = manager_of()
    for n in range(3):
        await manager.append(OWNER, ConversationTurn(f"q{n}", f"a{n}"))
    assert [turn.user_content for turn in await manager.recent(OWNER)] == ["q1", "q2"]
    assert len(await manager.recent(OWNER, limit=1000)) == 3
    await manager.clear(OWNER)
    assert await manager.recent(OWNER) == ()


@pytest.mark.parametrize("limit", [0, 1001, True, 1.5])
async def test_recent_takes_one_to_a_thousand(limit: Any) -> None:
    with pytest.raises(ValueError, match="limit"):
        await manager_of().recent(OWNER, limit=limit)


async def test_each_tier_needs_its_owner_fields() -> None:
    manager = manager_of()
    for owner in (MemoryOwner("acme", user_id="ana", session_id="s"), MemoryOwner("acme")):
        with pytest.raises(MemoryScopeError):
            await manager.recent(owner)
    for owner in (OWNER, MemoryOwner("acme", user_id="ana", session_id="s", run_id="r")):
        with pytest.raises(MemoryScopeError):
            await manager.scratch(owner)


async def test_working_state_is_replaced_whole_and_copied_both_ways() -> None:
    manager = manager_of()
    assert await manager.scratch(RUN) == {}
    state: dict[str, Any] = {"steps": [1]}
    await manager.update(RUN, state)
    state["steps"].append(2)
    (await manager.scratch(RUN))["steps"].append(3)
    assert await manager.scratch(RUN) == {"steps": [1]}
    await manager.update(RUN, {"other": True})
    assert await manager.scratch(RUN) == {"other": True}
    await manager.clear_working(RUN)
    assert await manager.scratch(RUN) == {}


async def test_working_state_ends_with_its_time_to_live() -> None:
    now = [NOW]
    working = WorkingMemory(InMemoryWorkingMemoryStore(clock=lambda: now[0]))
    await working.update(RUN, {"a": 1}, ttl_seconds=60)
    now[0] = NOW + timedelta(seconds=59)
    assert await working.scratch(RUN) == {"a": 1}
    now[0] = NOW + timedelta(seconds=60)
    assert await working.scratch(RUN) == {}


async def test_what_is_over_or_was_replaced_is_kept_nowhere() -> None:
    now = [NOW]
    store = InMemoryWorkingMemoryStore(clock=lambda: now[0])
    for number in range(3_000):
        run = replace(RUN, run_id=f"r{number % 10}")
        await store.put(run, {"n": number}, ttl_seconds=60)
    assert len(store._ends) <= 2 * 10 + 64
    now[0] = NOW + timedelta(seconds=60)
    await store.put(RUN, {"a": 1}, ttl_seconds=60)
    assert (len(store._states), len(store._ends)) == (1, 1)


class LookedThrough(dict[Any, Any]):
    """Counts the entries that are passed over where all of them are gone through."""

    passed = 0

    def __iter__(self) -> Iterator[Any]:
        self.passed += len(self)
        return super().__iter__()

    def items(self) -> Any:
        self.passed += len(self)
        return super().items()

    def values(self) -> Any:
        self.passed += len(self)
        return super().values()


async def test_a_put_looks_through_no_other_runs() -> None:
    store = InMemoryWorkingMemoryStore(clock=lambda: NOW)
    store._states = states = LookedThrough()
    for number in range(1_000):
        await store.put(replace(RUN, run_id=f"r{number}"), {"n": 1}, ttl_seconds=60)
    assert states.passed == 0
    for _ in range(5_000):
        await store.put(RUN, {"n": 1}, ttl_seconds=60)
    assert 0 < states.passed <= 2 * 5_000  # what was replaced is cleared away now and then


@pytest.mark.parametrize("ttl", [0, 365 * 24 * 3600 + 1, 1.5])
async def test_a_time_to_live_is_a_second_to_a_year(ttl: Any) -> None:
    with pytest.raises(ValueError, match="ttl_seconds"):
        await manager_of().update(RUN, {}, ttl_seconds=ttl)


@pytest.mark.parametrize("state", [{"at": NOW}, {"n": float("nan")}, {1: 2}, ["list"]])
async def test_a_state_that_json_cannot_hold_is_refused(state: Any) -> None:
    with pytest.raises(ValueError, match="state"):
        await manager_of().update(RUN, state)


async def test_runs_projects_and_users_do_not_share_working_state() -> None:
    manager = manager_of()
    await manager.update(RUN, {"a": 1})
    for other in (
        MemoryOwner("acme", "apollo", "ana", "token-1", "monday", "run-2"),
        MemoryOwner("acme", None, "ana", "token-1", "monday", "run-1"),
        MemoryOwner("acme", "apollo", "bo", "token-1", "monday", "run-1"),
    ):
        assert await manager.scratch(other) == {}


def _owned(**changes: Any) -> MemoryOwner:
    return MemoryOwner(**{"tenant_id": "acme", "user_id": "ana", **changes})


@pytest.mark.parametrize(
    ("scope", "owner"),
    [
        (MemoryScope.GLOBAL, _owned()),
        (MemoryScope.USER, _owned(user_id="bo")),
        (MemoryScope.USER, _owned(tenant_id="umbrella")),
        (MemoryScope.SESSION, _owned(session_id="tuesday")),
        (MemoryScope.SESSION, _owned()),
        (MemoryScope.PROJECT, _owned(project_id="zeus")),
        (MemoryScope.TENANT, _owned(user_id="bo")),
        (MemoryScope.TENANT, _owned(principal_id="token-2")),
        (MemoryScope.RUN, _owned(session_id="monday", run_id="r")),
    ],
)
async def test_nothing_is_saved_that_the_caller_could_not_see_or_claim(
    scope: MemoryScope, owner: MemoryOwner
) -> None:
    repository = Repository()
    manager = MemoryManager(long_term=LongTermMemory(repository))
    with pytest.raises(MemoryScopeError):
        await manager.save(OWNER, fact("a", "tea", scope=scope, owner=owner))
    assert repository.held == {}


async def test_what_is_the_callers_own_is_saved_found_and_deleted() -> None:
    manager = manager_of()
    for scope in (MemoryScope.SESSION, MemoryScope.USER, MemoryScope.PROJECT, MemoryScope.TENANT):
        await manager.save(OWNER, fact(scope.value, "green tea", scope=scope))
    assert (await manager.get(OWNER, "user")) is not None
    query = MemoryQuery(OWNER, (MemoryScope.USER,), ("fact",), text="tea")  # type: ignore[arg-type]
    assert [memory.memory_id for memory in await manager.search(OWNER, query)] == ["user"]
    assert await manager.delete(OWNER, "user")
    assert not await manager.delete(OWNER, "user")


async def test_a_query_of_another_owner_is_refused() -> None:
    manager, query = manager_of(), MemoryQuery(MemoryOwner("acme", user_id="bo"), text="tea")
    with pytest.raises(MemoryScopeError):
        await manager.search(RUN, query)
    with pytest.raises(MemoryScopeError):
        await manager.snapshot(RUN, query=query)


async def test_a_snapshot_reads_all_tiers_together() -> None:
    manager = manager_of(fact("a", "tea"))
    await manager.append(RUN, ConversationTurn("q", "a"))
    await manager.update(RUN, {"step": 1})
    query = MemoryQuery(RUN, (MemoryScope.USER,), ("fact",), text="tea")  # type: ignore[arg-type]
    snapshot = await manager.snapshot(RUN, query=query, recent_limit=1)
    assert snapshot.recent_turns == (ConversationTurn("q", "a"),)
    assert snapshot.working_state == {"step": 1}
    assert [memory.memory_id for memory in snapshot.memories] == ["a"]


def test_defaults_that_do_not_fit_are_errors_of_configuration() -> None:
    for values in ({"recent_turn_limit": 0}, {"working_ttl_seconds": 0}):
        with pytest.raises(MemoryConfigurationError):
            MemoryManagerConfig(**values)


async def test_a_message_store_serves_as_the_conversation_of_turns() -> None:
    messages = Messages()
    short_term = ShortTermMemory(MessageTurns(messages, clock=clock))
    await short_term.append(OWNER, ConversationTurn("q", "a"))
    assert await short_term.recent(OWNER) == (ConversationTurn("q", "a"),)
    stamps: set[datetime] = {each.created_at for each in messages.held}
    assert stamps == {NOW}
    await short_term.clear(OWNER)
    assert messages.held == []
