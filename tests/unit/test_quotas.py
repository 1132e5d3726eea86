"""Quotas under concurrent writers, and in the middle of a turn."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from muniment import (
    AsyncSQLiteStore,
    ConversationMessage,
    InMemoryStore,
    Memory,
    MemoryConfigurationError,
    MemoryContextBuilder,
    MemoryExtractor,
    MemoryOwner,
    MemoryPolicy,
    MemoryScope,
    MemoryType,
    QuotaExceededError,
    Scope,
    conversation_identity,
    open_memory,
)
from muniment.testing import ManualClock
from tests.doubles.proposing_model import ProposingModel, proposed

ANA = MemoryOwner("acme", user_id="ana", principal_id="ana", session_id="s1")
LIMIT = 20


def _memory(memory_id: str, content: str = "three words here") -> Memory:
    return Memory(memory_id, MemoryScope.USER, MemoryType.FACT, ANA, content)


async def _fill(store: Any, name: str, count: int) -> int:
    """How many of `count` memories found room."""
    stored = 0
    for number in range(count):
        try:
            await store.memories.save(_memory(f"{name}-{number}"))
            stored += 1
        except QuotaExceededError:
            pass
    return stored


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_eight_threads_fill_a_quota_exactly(kind: str, tmp_path: Path) -> None:
    """Hazard 15."""
    store = (
        InMemoryStore(quota_entries=LIMIT)
        if kind == "memory"
        else AsyncSQLiteStore(tmp_path / "m.db", quota_entries=LIMIT)
    )
    async with store:
        with ThreadPoolExecutor(8) as threads:
            work = [
                asyncio.get_running_loop().run_in_executor(
                    threads, lambda n=n: asyncio.run(_fill(store, str(n), 8))
                )
                for n in range(8)
            ]
            stored = await asyncio.gather(*work)
        assert sum(stored) == LIMIT
        assert await store.count(Scope("acme")) == LIMIT


_CHILD = """
import asyncio, sys
from muniment import AsyncSQLiteStore
from tests.unit.test_quotas import LIMIT, _fill
async def main():
    async with AsyncSQLiteStore(sys.argv[1], quota_entries=LIMIT, quota_tokens=6 * LIMIT) as store:
        print(await _fill(store, sys.argv[2], LIMIT))
asyncio.run(main())
"""


async def test_two_processes_fill_a_quota_exactly(tmp_path: Path) -> None:
    """Hazard 15."""
    assert sum(_filled_by_children(tmp_path / "m.db")) == LIMIT
    async with AsyncSQLiteStore(tmp_path / "m.db") as store:
        assert await store.count(Scope("acme")) == LIMIT


def _filled_by_children(path: Path) -> list[int]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    children = [
        subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", _CHILD, str(path), name],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    return [int(child.communicate(timeout=120)[0]) for child in children]


async def test_a_lowered_quota_leaves_what_is_there_and_lets_it_shrink(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "m.db") as store:
        assert await _fill(store, "m", 5) == 5
    async with AsyncSQLiteStore(tmp_path / "m.db", quota_entries=2, quota_tokens=1) as store:
        await store.memories.save(_memory("m-0", "short"))
        with pytest.raises(QuotaExceededError, match="tokens"):
            await store.memories.save(_memory("m-0", "three words here and more"))
        with pytest.raises(QuotaExceededError, match="entries"):
            await store.memories.save(_memory("m-9", "x"))
        assert await store.count(Scope("acme")) == 5


async def test_a_full_quota_degrades_extraction_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    async with AsyncSQLiteStore(tmp_path / "m.db", clock=clock, quota_entries=1) as store:
        model = ProposingModel(proposed("Ana lives in Rome"), proposed("Ana works in Oslo"))
        extractor = MemoryExtractor(
            policy=MemoryPolicy(), memories=store.memories, model=model, clock=clock
        )
        said = [ConversationMessage("q1", "user", "I live in Rome", clock())]  # type: ignore[arg-type]
        with caplog.at_level(logging.WARNING):
            stored = await extractor.extract(ANA, messages=said)
        assert [memory.content for memory in stored] == ["Ana lives in Rome"]
        stopped = [r for r in caplog.records if r.getMessage() == "extraction stopped"]
        assert [vars(record)["error"] for record in stopped] == ["QuotaExceededError"]
        assert "Oslo" not in caplog.text


async def test_a_full_quota_never_fails_the_turn(tmp_path: Path) -> None:
    class Summarizer(ProposingModel):
        async def generate_text(self, *, system: str, user: str) -> Any:
            return "a summary"

    clock = ManualClock()
    policy = MemoryPolicy(recent_max_tokens=64, summary_keep_messages=2)
    async with AsyncSQLiteStore(tmp_path / "m.db", clock=clock, quota_entries=0) as store:
        builder = MemoryContextBuilder(
            policy=policy,
            messages=store.conversations,
            memories=store.memories,
            model=Summarizer(),
            clock=clock,
        )
        talk = conversation_identity(ANA, subject="a turn")
        for number in range(8):
            text = f"message {number} " + "word " * 20
            role: Any = "assistant" if number % 2 else "user"
            message = ConversationMessage(f"q{number}", role, text, clock())
            await store.conversations.append_messages(talk, [message])
        context = await builder.build(ANA, "and now?")
        assert context.messages
        assert (context.summary, context.summary_written) == (None, False)


@pytest.mark.parametrize("name", ["quota_entries", "quota_tokens", "max_text_bytes"])
@pytest.mark.parametrize("value", [-1, 1.5, "9", True, 1 << 60])
def test_an_option_out_of_range_is_named(name: str, value: Any) -> None:
    for make in (InMemoryStore, AsyncSQLiteStore):
        with pytest.raises(MemoryConfigurationError, match=f"^{name}: "):
            make(**{name: value})


def test_an_estimator_must_give_positive_whole_numbers() -> None:
    with pytest.raises(MemoryConfigurationError, match="token_estimator"):
        AsyncSQLiteStore(token_estimator="no")  # type: ignore[arg-type]


async def test_a_zero_estimate_stores_nothing(tmp_path: Path) -> None:
    async with AsyncSQLiteStore(tmp_path / "m.db", token_estimator=lambda _: 0) as store:
        with pytest.raises(MemoryConfigurationError, match="token_estimator"):
            await store.memories.save(_memory("m1"))
        assert await store.count(Scope("acme")) == 0


async def test_quotas_come_from_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_QUOTA_ENTRIES", "1")
    for url in ("memory://", f"sqlite:///{tmp_path / 'm.db'}"):
        async with open_memory(url, embedder=None) as memory:
            await memory.remember(ANA, "one")
            with pytest.raises(QuotaExceededError):
                await memory.remember(ANA, "two")
