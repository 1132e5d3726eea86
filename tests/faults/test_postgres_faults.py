"""PostgreSQL when lines hang, break and come back: nothing is lost, and nothing is stored twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from muniment.context.policy import MemoryPolicy
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.errors import MemoryStoreError
from muniment.stores.postgres import PostgresStore
from muniment.stores.postgres.session import Session
from muniment.testing import Kit
from muniment.testing.kit import person, talk_of
from muniment.wiring import OpenMemory
from tests.servers.bad_line import BadLine
from tests.servers.databases import DATABASES, execute, name_of, owner_url

ANA = person()
LONG = 30.0


@pytest.fixture
async def line() -> AsyncIterator[BadLine]:
    async with BadLine.to(DATABASES.lend()) as line:
        yield line


def _kit(url: str, seconds: float = LONG, **options: object) -> object:
    return Kit.of(
        lambda clock, embedder, **_: PostgresStore(
            url, clock=clock, embedder=embedder, timeout_seconds=seconds, **options
        )  # type: ignore[arg-type]
    )


async def test_a_hung_line_holds_nobody_up_and_is_used_again_when_it_recovers(
    line: BadLine,
) -> None:
    async with _kit(line.url, 1.0) as kit:
        await kit.save(ANA, "zebra", "m1")
        line.hang()
        begun = time.monotonic()
        for call in (kit.memories.get(ANA, "m1"), kit.save(ANA, "quokka", "m2")):
            with pytest.raises(MemoryStoreError, match=r"in time|reached"):
                await call
        assert time.monotonic() - begun < LONG
        line.go_on()
        assert await _until_answered(kit) == ["zebra"]


async def _until_answered(kit: Kit) -> list[str]:
    for _ in range(20):
        try:
            return [found for found in await kit.found(ANA) if found == "zebra"]
        except MemoryStoreError:
            continue
    raise AssertionError("the line recovered and the store did not")


async def test_a_cancelled_call_ends_at_once_on_a_hung_line(line: BadLine) -> None:
    async with _kit(line.url) as kit:
        await kit.save(ANA, "zebra", "m1")
        line.hang()
        call = asyncio.ensure_future(kit.memories.get(ANA, "m1"))
        await asyncio.wait({call}, timeout=0.2)
        call.cancel()
        begun = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - begun < LONG / 2
        line.go_on()


async def test_a_hung_database_never_holds_a_turn_past_its_time(line: BadLine) -> None:
    policy = MemoryPolicy(call_timeout_seconds=1.0, turn_timeout_seconds=2.0)
    owner = MemoryOwner("acme", user_id="ana", principal_id="ana", session_id="s1")
    async with PostgresStore(line.url, timeout_seconds=60) as store:
        memory = OpenMemory(store, policy=policy)
        await memory.remember(owner, "Ana likes tea")
        line.hang()
        begun = time.monotonic()
        context = await memory.context(owner, question="what does Ana like")
        assert time.monotonic() - begun < LONG
        assert "tea" not in str(context)
        line.go_on()
        assert "tea" in str(await memory.context(owner, question="what does Ana like"))


async def test_a_store_whose_connections_were_all_cut_goes_on(line: BadLine) -> None:
    async with _kit(line.url) as kit:
        await asyncio.gather(*(kit.save(ANA, f"row {number}") for number in range(8)))
        for _ in range(3):
            _cut_everybody(line)
            assert len(await kit.found(ANA, limit=100)) >= 8
            _cut_everybody(line)
            await kit.save(ANA, "one more", "m9")
        assert await kit.store.count(Scope("acme")) == 9


def _cut_everybody(line: BadLine) -> None:
    execute(
        owner_url(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'muniment' AND datname = %(name)s",
        {"name": name_of(line.url)},
    )


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_commit_whose_answer_is_lost_stores_once_and_is_acknowledged(
    line: BadLine, when: str
) -> None:
    async with _kit(line.url, audit=True) as kit:
        await kit.save(ANA, "warm")
        line.break_commit(when)
        stored = await kit.memories.store_fact(kit.memory(ANA, "Ana lives in Rome", "m1"))
        assert stored.created
        line.break_commit(when)
        await kit.say(ANA, "hello", "again")
        line.break_commit(when)
        assert await kit.memories.delete(ANA, "m1")
        assert line.broken == 3
        assert await kit.said(ANA) == ["hello", "again"]
        verified = await kit.store.verify_audit()
        assert verified is not None
        events = ["memory.saved"] * 2 + ["conversation.created", "conversation.appended"]
        assert (verified.ok, verified.records) == (True, len([*events, "memory.deleted"]))


async def test_a_commit_that_a_crashed_server_may_have_forgotten_is_not_acknowledged(
    line: BadLine,
) -> None:
    """After a crash the number of the transaction may be that of another, which was committed."""

    def crash() -> None:
        # What a crash does to a server's statistics, at the same moment.
        execute(owner_url(), "SELECT pg_stat_reset_shared('bgwriter')")

    async with _kit(line.url) as kit:
        await kit.save(ANA, "warm")
        line.break_commit("after", crash)
        with pytest.raises(MemoryStoreError, match="whether it was stored is unknown"):
            await kit.save(ANA, "stored by this transaction, or by no one")
        line.break_commit("before")
        await kit.save(ANA, "run again")
        assert line.broken == 2


async def test_a_deadlock_is_run_again(line: BadLine) -> None:
    async with _kit(line.url) as kit:
        await kit.save(ANA, "a", "a")
        await kit.save(ANA, "b", "b")
        store = kit.store
        assert isinstance(store, PostgresStore)
        both_hold = asyncio.Barrier(2)
        runs: list[str] = []

        async def change(session: Session, first: str, second: str) -> None:
            runs.append(first)
            await _lock(session, first)
            if len(runs) <= 2:
                await both_hold.wait()
            await _lock(session, second)

        core = store._core
        await asyncio.gather(
            core.write("acme", lambda session: change(session, "a", "b")),
            core.write("acme", lambda session: change(session, "b", "a")),
        )
        assert len(runs) > 2


async def _lock(session: Session, memory_id: str) -> None:
    query = "SELECT 1 FROM memory WHERE memory_id = %s FOR UPDATE"
    await session._connection.execute(query, (memory_id,))


async def test_an_error_quotes_neither_statement_nor_value(line: BadLine) -> None:
    async with _kit(line.url) as kit:
        await kit.save(ANA, "zebra")
        execute(owner_url(name_of(line.url)), "DROP TABLE muniment.derivation CASCADE")
        try:
            with pytest.raises(MemoryStoreError) as refused:
                await kit.store.erase(Scope("acme"))
            assert "zebra" not in str(refused.value)
            assert "SELECT" not in str(refused.value)
        finally:
            DATABASES.lose(line.url)


async def test_writers_at_once_store_a_fact_once(line: BadLine) -> None:
    async with _kit(line.url) as one, _kit(line.url) as other:

        async def work(kit: Kit, number: int) -> bool:
            await kit.say(ANA, f"said {id(kit)} {number}")
            fact = kit.memory(ANA, "Ana lives in Rome", f"m{id(kit)}{number}")
            return (await kit.memories.store_fact(fact)).created

        answers = await asyncio.gather(
            *(work(kit, number) for number in range(12) for kit in (one, other))
        )
        assert sum(answers) == 1
        messages = await one.conversations.recent_messages(talk_of(ANA), limit=100)
        assert len(messages) == 24
        assert len(await other.recalled(ANA, "Rome said", limit=100)) == 25
