"""Working memory in Valkey: the kit's specs, native expiry, keys, erasure, and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from valkey.asyncio import Valkey

from muniment.domain.conversation import ConversationIdentity
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.errors import MemoryStoreError
from muniment.stores.in_memory import InMemoryStore
from muniment.stores.valkey import ValkeyWorkingMemoryStore
from muniment.stores.working_apart import WorkingApart
from muniment.testing import Capability, Kit, Spec
from muniment.testing.kit import StoreMaker, person
from muniment.testing.registry import specs
from muniment.wiring import open_memory
from tests.isolation.test_ports import WRONG
from tests.servers import session

RUN = person(run_id="r1")


def _maker() -> StoreMaker:
    prefix = f"test:{uuid4().hex}"

    def make(clock: Any, embedder: Any, **options: Any) -> Any:
        working = ValkeyWorkingMemoryStore(
            session.address("valkey"), clock=clock, prefix=prefix, timeout_seconds=60
        )
        return WorkingApart(InMemoryStore(clock=clock, embedder=embedder, **options), working)

    return make


CASES = [
    each
    for each in specs()
    if each.capability is Capability.WORKING or "session" in each.name or "eras" in each.name
]


@pytest.mark.parametrize("spec", CASES, ids=str)
async def test_a_store_whose_states_are_in_valkey_conforms(spec: Spec) -> None:
    async with Kit.of(_maker()) as kit:
        await spec.run(kit)


@pytest.fixture
async def working() -> AsyncIterator[ValkeyWorkingMemoryStore]:
    async with ValkeyWorkingMemoryStore(
        session.address("valkey"), prefix=f"test:{uuid4().hex}", timeout_seconds=60
    ) as store:
        yield store


@pytest.fixture
async def server() -> AsyncIterator[Valkey]:
    client: Valkey = Valkey.from_url(session.address("valkey"), decode_responses=True)
    yield client
    await client.aclose()


async def _keys(working: ValkeyWorkingMemoryStore, server: Valkey) -> list[str]:
    return sorted(await server.keys(f"{working._prefix}:*"))


async def test_the_server_itself_forgets_a_state_when_its_time_is_over(
    working: ValkeyWorkingMemoryStore, server: Valkey
) -> None:
    await working.put(RUN, {"step": 1}, ttl_seconds=60)
    (key,) = await _keys(working, server)
    assert 0 < await server.ttl(key) <= 60
    await working.put(RUN, {"step": 2}, ttl_seconds=3600)
    assert 60 < await server.ttl(key) <= 3600
    await server.expire(key, 0)
    assert await working.get(RUN) is None


async def test_puts_at_once_leave_one_whole_state(working: ValkeyWorkingMemoryStore) -> None:
    states = [{"who": number, "same": number} for number in range(50)]
    await asyncio.gather(*(working.put(RUN, state, ttl_seconds=60) for state in states))
    assert await working.get(RUN) in states


async def test_a_key_shows_no_name(working: ValkeyWorkingMemoryStore, server: Valkey) -> None:
    await working.put(
        MemoryOwner("quokka-tenant", user_id="quokka-user", principal_id="q",
                    session_id="quokka-session", run_id="quokka-run"), {}, ttl_seconds=60,
    )  # fmt: skip
    (key,) = await _keys(working, server)
    assert "quokka" not in key


@pytest.mark.parametrize("wrong", WRONG)
async def test_the_wrong_owner_finds_and_erases_nothing(
    working: ValkeyWorkingMemoryStore, wrong: str
) -> None:
    await working.put(RUN, {"mine": 1}, ttl_seconds=60)
    caller = WRONG[wrong]
    assert await working.get(caller) is None
    await working.delete(caller)
    if wrong != "a tenant-wide caller":  # whose realm is the whole tenant
        assert await working.erase(caller) == 0
    assert await working.get(RUN) == {"mine": 1}


async def test_erasing_reaches_the_realm_and_nothing_else(
    working: ValkeyWorkingMemoryStore,
) -> None:
    owners = [
        person(run_id="r1"), person(run_id="r2"), person(session="s2", run_id="r1"),
        person(user="bo", run_id="r1"), person("acme_", run_id="r1"), person("*", run_id="r1"),
    ]  # fmt: skip
    for owner in owners:
        await working.put(owner, {"a": 1}, ttl_seconds=60)
    assert await working.erase(Scope("acme", subject="ana", session="s1")) == 2
    assert await working.erase(Scope("acme", agent="helper")) == 0
    assert await working.erase(Scope("acme", subject="ana")) == 1
    assert await working.erase(MemoryOwner("*")) == 1
    assert await working.erase(Scope("acme")) == 1
    assert await working.get(person("acme_", run_id="r1")) == {"a": 1}


async def test_a_lost_connection_is_made_again(
    working: ValkeyWorkingMemoryStore, server: Valkey
) -> None:
    await working.put(RUN, {"step": 1}, ttl_seconds=60)
    await server.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert await working.get(RUN) == {"step": 1}


async def test_an_absent_server_is_an_error_of_ours(tmp_path: Any) -> None:
    async with ValkeyWorkingMemoryStore(f"unix://{tmp_path}/none", timeout_seconds=0.3) as absent:
        with pytest.raises(MemoryStoreError, match="Valkey"):
            await absent.get(RUN)


async def test_a_hung_server_holds_nobody_up() -> None:
    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as hung:
        port = hung.sockets[0].getsockname()[1]
        async with ValkeyWorkingMemoryStore(
            f"redis://127.0.0.1:{port}", timeout_seconds=0.3
        ) as working:
            async with asyncio.timeout(30):
                with pytest.raises(MemoryStoreError, match="Valkey"):
                    await working.put(RUN, {}, ttl_seconds=60)


async def test_one_setting_moves_working_memory_to_valkey(
    monkeypatch: pytest.MonkeyPatch, server: Valkey
) -> None:
    monkeypatch.setenv("MUNIMENT_VALKEY_URL", session.address("valkey"))
    owner = person(f"t{uuid4().hex}", run_id="r1")
    async with open_memory("memory://", embedder=None) as memory:
        await memory.manager.update(owner, {"step": 1})
    async with open_memory("memory://", embedder=None) as memory:
        assert await memory.manager.scratch(owner) == {"step": 1}
        talk = ConversationIdentity(owner.tenant_id, "ana", "s1", "ana")
        await memory.conversations.create(talk)
        assert await memory.conversations.delete(talk)
        assert await memory.manager.scratch(owner) == {}
        await memory.manager.update(owner, {"step": 2})
        assert (await memory.erase(Scope(owner.tenant_id))).working_states == 1


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{",
        b"[" * 60_000,
        b'{"ends": 1}',
        b'{"ends": "x", "state": {}}',
        b'{"ends": null, "state": [1]}',
    ],
    ids=lambda value: repr(value[:30]),
)
async def test_a_value_that_is_not_ours_is_named_and_can_be_replaced(
    working: ValkeyWorkingMemoryStore, server: Valkey, value: bytes
) -> None:
    await working.put(RUN, {"step": 1}, ttl_seconds=60)
    (key,) = await _keys(working, server)
    await server.set(key, value)
    with pytest.raises(MemoryStoreError, match="not one of ours"):
        await working.get(RUN)
    await working.put(RUN, {"step": 2}, ttl_seconds=60)
    assert await working.get(RUN) == {"step": 2}


async def test_a_key_of_another_kind_is_named_and_can_be_deleted(
    working: ValkeyWorkingMemoryStore, server: Valkey
) -> None:
    await working.put(RUN, {"step": 1}, ttl_seconds=60)
    (key,) = await _keys(working, server)
    await server.delete(key)
    await server.rpush(key, "x")
    with pytest.raises(MemoryStoreError, match="Valkey"):
        await working.get(RUN)
    await working.delete(RUN)
    assert await working.get(RUN) is None


class _Unreachable:
    """Working memory whose server is away until it is told otherwise."""

    def __init__(self) -> None:
        self.away, self.erased = True, 0

    async def erase(self, realm: Any, /, *, preview: bool = False) -> int:
        if self.away:
            raise MemoryStoreError("Valkey cannot be reached")
        self.erased += 1
        return 1


async def test_a_deletion_that_the_server_of_states_missed_is_repeated_whole() -> None:
    working: Any = _Unreachable()
    store = WorkingApart(InMemoryStore(), working)
    talk = ConversationIdentity("acme", "ana", "s1", "ana")
    await store.conversations.create(talk)
    with pytest.raises(MemoryStoreError, match="cannot be reached"):
        await store.conversations.delete(talk)
    working.away = False
    assert await store.conversations.delete(talk)
    assert working.erased == 1
