"""One door: what `open_memory` wires, on each embedded store, and its blocking twin."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    ConversationMessage,
    ConversationTurn,
    InvalidEntryError,
    MemoryConfigurationError,
    MemoryOwner,
    MemoryPolicy,
    MemoryRetention,
    MemoryScopeError,
    MemoryType,
    NotFoundError,
    OpenMemory,
    Scope,
    Trust,
    conversation_identity,
    open_memory,
    open_memory_blocking,
)
from tests.doubles.turn import NOW, Embedder, Model

ANA = MemoryOwner("acme", user_id="ana", principal_id="token", session_id="monday")
BO = MemoryOwner("acme", user_id="bo", principal_id="token", session_id="monday")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "MODEL", "MODEL_BASE_URL", "EMBEDDER", "MEMORY_ENABLED"):
        monkeypatch.delenv(f"MUNIMENT_{name}", raising=False)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def ticking() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "memory"])
async def memory(
    request: pytest.FixtureRequest, tmp_path: Path, ticking: Clock
) -> AsyncIterator[OpenMemory]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'm.db'}"
    async with open_memory(url, embedder=None, clock=ticking) as opened:
        yield opened


def said(message_id: str, text: str, role: str = "user") -> ConversationMessage:
    return ConversationMessage(message_id, role, text, NOW)  # type: ignore[arg-type]


async def test_what_is_remembered_is_recalled_by_its_owner_alone(memory: OpenMemory) -> None:
    stored = await memory.remember(ANA, "Ana prefers green tea", trust="owner")
    assert (stored.trust, stored.memory_type) == (Trust.OWNER, MemoryType.FACT)
    assert stored.valid_from == NOW
    assert stored.expires_at == NOW + timedelta(days=365)
    assert [m.content for m in await memory.recall(ANA, "tea")] == ["Ana prefers green tea"]
    assert await memory.recall(BO, "tea") == ()


async def test_remembering_the_same_again_answers_the_live_fact(memory: OpenMemory) -> None:
    first = await memory.remember(ANA, "Ana likes tea")
    assert (await memory.remember(ANA, "ana  LIKES tea")).memory_id == first.memory_id


async def test_a_replacement_closes_the_old_fact_and_history_tells_both(
    memory: OpenMemory, ticking: Clock
) -> None:
    lisbon = await memory.remember(ANA, "Ana lives in Lisbon")
    ticking.now = NOW + timedelta(days=1)
    ghent = await memory.remember(ANA, "Ana lives in Ghent", replaces=lisbon.memory_id)
    assert [m.content for m in await memory.recall(ANA, "Ana lives")] == ["Ana lives in Ghent"]
    before = await memory.recall(ANA, "Ana lives", as_of=NOW)
    assert [m.content for m in before] == ["Ana lives in Lisbon"]
    chain = await memory.history(ANA, lisbon.memory_id)
    assert [m.memory_id for m in chain] == [lisbon.memory_id, ghent.memory_id]
    assert await memory.history(BO, lisbon.memory_id) == ()


async def test_naming_an_already_replaced_fact_follows_its_succession(
    memory: OpenMemory, ticking: Clock
) -> None:
    cities, first = ["Lisbon", "Ghent", "Oslo"], None
    for day, city in enumerate(cities):
        ticking.now = NOW + timedelta(days=day)
        stored = await memory.remember(ANA, f"Ana lives in {city}", replaces=first)
        first = first or stored.memory_id
    assert first is not None
    chain = await memory.history(ANA, first)
    assert [m.content.split()[-1] for m in chain] == cities
    assert [m.content for m in await memory.recall(ANA, "Ana lives")] == ["Ana lives in Oslo"]


async def test_late_news_is_placed_before_what_is_current(memory: OpenMemory) -> None:
    march, february = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 2, 5, tzinfo=UTC)
    rome = await memory.remember(ANA, "Ana lives in Rome", valid_from=march)
    bonn = await memory.remember(
        ANA, "Ana lives in Bonn", valid_from=february, replaces=rome.memory_id
    )
    assert bonn.invalid_at == march
    assert [m.content for m in await memory.recall(ANA, "Ana lives")] == ["Ana lives in Rome"]
    then = await memory.recall(ANA, "Ana lives", as_of=february + timedelta(days=5))
    assert [m.content for m in then] == ["Ana lives in Bonn"]


async def test_replacing_what_is_not_there_or_not_ones_own_is_one_answer(
    memory: OpenMemory,
) -> None:
    theirs = await memory.remember(BO, "Bo likes tea")
    for missing in (theirs.memory_id, "mem_never"):
        with pytest.raises(NotFoundError):
            await memory.remember(ANA, "Ana likes tea", replaces=missing)
    assert await memory.recall(ANA, "tea") == ()


async def test_remember_refuses_scopes_and_types_that_are_not_the_callers(
    memory: OpenMemory,
) -> None:
    for scope in ("global", "project", "run"):
        with pytest.raises(MemoryScopeError):
            await memory.remember(ANA, "text", scope=scope)
    for kind in ("conversation", "summary", "working"):
        with pytest.raises(InvalidEntryError):
            await memory.remember(ANA, "text", memory_type=kind)
    wide = await memory.remember(ANA, "Tea is at four", scope="tenant")
    with pytest.raises(InvalidEntryError):
        await memory.remember(ANA, "Ana drinks tea at five", replaces=wide.memory_id)


async def test_a_clock_without_a_time_zone_is_named_in_the_error(
    memory: OpenMemory, ticking: Clock
) -> None:
    ticking.now = NOW.replace(tzinfo=None)
    with pytest.raises(ValueError, match="clock: must have a time zone"):
        await memory.remember(ANA, "Ana drinks tea")
    with pytest.raises(ValueError, match="clock: must have a time zone"):
        await memory.recall(ANA, "tea")


async def test_a_conversation_is_remembered_in_the_next_session(memory: OpenMemory) -> None:
    await memory.conversations.append_messages(
        conversation_identity(ANA), [said("m1", "My sister Ida cannot eat peanuts.")]
    )
    tuesday = replace(ANA, session_id="tuesday")
    context = await memory.context(tuesday, "What can Ida not eat?")
    (recalled,) = context.recalled
    assert recalled.memory_type is MemoryType.CONVERSATION
    assert recalled.source_message_ids == ("m1",)
    assert recalled.trust is Trust.UNTRUSTED
    assert "[untrusted] user: My sister Ida" in context.render()
    assert (await memory.context(ANA, "What can Ida not eat?")).recalled == ()


async def test_the_facade_works_on_the_same_store(memory: OpenMemory) -> None:
    run = replace(ANA, run_id="run-1")
    await memory.manager.append(ANA, ConversationTurn("Hello", "Good day"))
    await memory.manager.update(run, {"step": 1})
    assert await memory.manager.recent(ANA) == (ConversationTurn("Hello", "Good day"),)
    assert await memory.manager.scratch(run) == {"step": 1}
    assert [m.content for m in (await memory.context(ANA, "?")).messages] == ["Hello", "Good day"]


async def test_erasing_an_owner_leaves_nothing_of_it(memory: OpenMemory) -> None:
    everywhere = MemoryOwner("acme", user_id="ana")
    await memory.remember(ANA, "Ana likes tea")
    await memory.remember(BO, "Bo likes tea")
    await memory.conversations.append_messages(conversation_identity(ANA), [said("m1", "tea!")])
    await memory.erase(everywhere)
    assert await memory.recall(ANA, "tea") == ()
    assert (await memory.context(ANA, "tea")).messages == ()
    assert len(await memory.recall(BO, "tea")) == 1


async def test_without_a_model_nothing_is_extracted(memory: OpenMemory) -> None:
    assert await memory.extract(ANA, [said("m1", "I like tea")]) == ()


async def test_an_explicit_policy_replaces_the_settings() -> None:
    policy = MemoryPolicy(retention=MemoryRetention(user_days=1), recall_top_k=0)
    async with open_memory("memory://", policy=policy, embedder=None) as memory:
        stored = await memory.remember(ANA, "Ana likes tea")
        assert stored.expires_at == stored.created_at + timedelta(days=1)
        assert await memory.recall(ANA, "tea") == ()


async def test_url_and_policy_come_from_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MUNIMENT_DATABASE_URL", f"sqlite:///{tmp_path / 'here.db'}")
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    async with open_memory() as memory:
        assert memory.policy.recall_messages == "user"
        await memory.remember(ANA, "Ana likes tea")
    assert (tmp_path / "here.db").exists()


async def test_a_model_and_an_embedder_are_used_where_given() -> None:
    model = Model(query="What does Ana drink?")
    async with open_memory("memory://", model=model, embedder=Embedder()) as memory:
        await memory.remember(ANA, "Ana likes tea")
        await memory.conversations.append_messages(conversation_identity(ANA), [said("m1", "Hi")])
        context = await memory.context(ANA, "And what does she drink?")
    assert context.standalone_query == "What does Ana drink?"
    assert [m.content for m in context.recalled] == ["Ana likes tea"]


@pytest.mark.parametrize("url", ["sqlite:///", "mysql://user:hush@host/db", "file.db", "sqlite:x"])
async def test_a_url_that_names_no_store_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(MemoryConfigurationError, match="url: must look like") as refused:
        async with open_memory(url, embedder=None):
            pass
    assert "hush" not in str(refused.value)


async def test_a_key_in_a_url_is_refused_before_a_file_has_its_name(tmp_path: Path) -> None:
    with pytest.raises(MemoryConfigurationError, match="question mark") as refused:
        async with open_memory(f"sqlite:///{tmp_path / 'm.db'}?key=hush", embedder=None):
            pass
    assert "hush" not in str(refused.value)
    assert not os.listdir(tmp_path)


async def test_an_unknown_embedder_or_model_is_refused() -> None:
    wrong: Any
    for wrong in ({"embedder": "magic"}, {"model": object()}):
        with pytest.raises(MemoryConfigurationError):
            async with open_memory("memory://", **wrong):
                pass


async def test_without_the_local_extra_recall_goes_by_words_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("muniment.embedders.local.available", lambda: False)
    async with open_memory("memory://") as memory:
        await memory.remember(ANA, "Ana likes tea")
        assert len(await memory.recall(ANA, "tea")) == 1
    assert [record.name for record in caplog.records] == ["muniment.wiring"]
    assert caplog.records[0].levelno == logging.WARNING


# -- the blocking twin ---------------------------------------------------------------------------


def test_the_blocking_twin_runs_the_same_code_and_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with open_memory_blocking(f"sqlite:///{tmp_path / 'm.db'}", embedder=None) as memory:
        memory.remember(ANA, "Ana likes tea")
        memory.conversations.append_messages(conversation_identity(ANA), [said("m1", "Hello")])
        memory.manager.append(ANA, ConversationTurn("q", "a"))
        assert [m.content for m in memory.recall(ANA, "tea")] == ["Ana likes tea"]
        assert len(memory.context(ANA, "tea").messages) == 3
        assert memory.store.count(MemoryOwner("acme")) == 1
        assert memory.policy.enabled
    assert threading.active_count() <= before


def test_errors_come_through_the_blocking_twin() -> None:
    with open_memory_blocking("memory://", embedder=None) as memory:
        with pytest.raises(NotFoundError):
            memory.remember(ANA, "text", replaces="mem_never")
        with pytest.raises(AttributeError):
            _ = memory.nothing_of_the_kind
    with pytest.raises(MemoryConfigurationError), open_memory_blocking("nothing"):
        pass


def test_several_threads_share_one_blocking_memory() -> None:
    with open_memory_blocking("memory://", embedder=None) as memory:
        work = [
            threading.Thread(target=memory.remember, args=(ANA, "Ana likes tea")) for _ in range(8)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert memory.store.count(MemoryOwner("acme")) == 1


async def test_a_blank_id_to_replace_is_one_that_is_not_there() -> None:
    async with open_memory("memory://", embedder=None) as memory:
        with pytest.raises(NotFoundError):
            await memory.remember(ANA, "Ana lives in Ghent", replaces="")
        assert await memory.store.count(Scope("acme")) == 0
