"""Every port method of every store, asked by the wrong owner: like asking for what never was."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from muniment.domain.conversation import ConversationIdentity
from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.ports import (
    ConversationDirectory,
    ConversationMessageStore,
    ConversationSessions,
    Ending,
    Exchanges,
    FactStore,
    MemoryCandidates,
    MemoryIndex,
    MemoryRepository,
    TurnOpenings,
    WorkingMemoryStore,
)
from muniment.testing import Kit
from muniment.testing.kit import EVERY_SCOPE, EVERY_TYPE, StoreMaker, person
from tests.contract.stores import MAKERS

ANA = person(project_id="p1", run_id="r1")
TALK = ConversationIdentity("acme", "ana", "s1", "ana")
WRONG = {
    "a colleague": person(user="bo", run_id="r1"),
    "another tenant": person("other", project_id="p1", run_id="r1"),
    "a tenant with a longer name": person("acme-corp", project_id="p1", run_id="r1"),
    "a wild card for a tenant": person("%", project_id="%", run_id="%"),
    "a wild card for a user": person(user="%", session="%", run_id="%"),
    "other letter case": person(user="ANA", run_id="r1"),
    "a tenant-wide caller": MemoryOwner("acme", principal_id="x", session_id="s1", run_id="r1"),
}
Ask = Callable[[Kit, MemoryOwner, ConversationIdentity, str], Awaitable[Any]]


def _query(caller: MemoryOwner, **fields: Any) -> MemoryQuery:
    return MemoryQuery(caller, text="secret zebra", include_invalid=True, **fields)


def _candidates(kit: Kit, caller: MemoryOwner, messages: str) -> Awaitable[Any]:
    return kit.memories.candidates(
        caller, "secret zebra", embedding=None, scopes=EVERY_SCOPE, memory_types=EVERY_TYPE,
        messages=messages, session_id="s1",
    )  # fmt: skip


async def _fact(kit: Kit, caller: MemoryOwner, memory_id: str) -> Any:
    fact = kit.memory(caller, "a fact of the caller's own", "the caller's own")
    stored = await kit.memories.store_fact(fact, supersedes=memory_id)
    await kit.memories.delete(caller, "the caller's own")
    return stored.created, stored.superseded


async def _own_row(kit: Kit, caller: MemoryOwner, memory_id: str) -> Any:
    """Saving an id that another owner uses makes a row of one's own, and tells nothing."""
    saved = await kit.save(caller, "the caller's text", memory_id)
    deleted = await kit.memories.delete(caller, memory_id)
    return saved.content, deleted


async def _own_messages(kit: Kit, talk: ConversationIdentity, message_id: str) -> Any:
    await kit.conversations.append_messages(talk, [kit.message("the caller's", message_id)])
    rows = await kit.conversations.recent_messages(talk, limit=9)
    await kit.conversations.delete(talk)
    return [row.content for row in rows]


async def _own_session(kit: Kit, talk: ConversationIdentity) -> Any:
    await kit.conversations.create(talk, kind="agent")
    title = await kit.conversations.get_title(talk)
    return title, await kit.conversations.delete(talk)


async def _own_state(kit: Kit, caller: MemoryOwner) -> Any:
    await kit.store.working.put(caller, {"mine": 1}, ttl_seconds=60)
    state = await kit.store.working.get(caller)
    await kit.store.working.delete(caller)
    return state


async def _own_exchange(kit: Kit, talk: ConversationIdentity) -> Any:
    exchanges = kit.store.exchanges
    begun = await exchanges.begin(
        talk, kit.message("the caller's"), holder="h", ttl_seconds=9, new_kind="chat", pairs=3
    )
    title = await exchanges.end(talk, Ending(), holder="h")
    return begun, title, await kit.conversations.delete(talk)


async def _page_after(kit: Kit, talk: ConversationIdentity, message_id: str) -> Any:
    try:
        return await kit.conversations.messages_after(talk, after_message_id=message_id, limit=9)
    except ValueError as error:
        return str(error)


async def _opening(kit: Kit, caller: MemoryOwner, talk: ConversationIdentity) -> Any:
    if not isinstance(kit.store, TurnOpenings):
        return None
    query = MemoryQuery(caller, scopes=EVERY_SCOPE, include_invalid=True)
    return await kit.store.opening(talk, query, limit=99)


# One question a port method: (kit, caller, the caller's conversation, an id) -> an answer.
QUESTIONS: dict[str, Ask] = {
    "MemoryRepository.save": lambda kit, who, _, name: _own_row(kit, who, name),
    "MemoryRepository.get": lambda kit, who, _, name: kit.memories.get(who, name),
    "MemoryRepository.search": lambda kit, who, *_: kit.memories.search(_query(who)),
    "MemoryRepository.delete": lambda kit, who, _, name: kit.memories.delete(who, name),
    "MemoryIndex.index_memory": lambda kit, who, _, name: kit.memories.index_memory(
        kit.memory(who, "secret zebra", name), [1.0, 0.0]
    ),
    "MemoryIndex.search_memories": lambda kit, who, *_: kit.memories.search_memories(
        _query(who), [1.0, 0.0]
    ),
    "MemoryIndex.delete_memory": lambda kit, who, _, name: kit.memories.delete_memory(who, name),
    "MemoryCandidates.candidates": lambda kit, who, *_: _candidates(kit, who, "user"),
    "FactStore.store_fact": lambda kit, who, _, name: _fact(kit, who, name),
    "ConversationMessageStore.append_messages": lambda kit, _, talk, name: _own_messages(
        kit, talk, name
    ),
    "ConversationMessageStore.recent_messages": lambda kit, _, talk, __: (
        kit.conversations.recent_messages(talk, limit=9)
    ),
    "ConversationMessageStore.recent_complete_messages": lambda kit, _, talk, __: (
        kit.conversations.recent_complete_messages(talk, limit=9)
    ),
    "ConversationMessageStore.messages_after": lambda kit, _, talk, name: _page_after(
        kit, talk, name
    ),
    "ConversationMessageStore.clear_messages": lambda kit, _, talk, __: (
        kit.conversations.clear_messages(talk)
    ),
    "Exchanges.begin": lambda kit, _, talk, __: _own_exchange(kit, talk),
    "Exchanges.end": lambda kit, _, talk, __: kit.store.exchanges.end(talk, Ending(), holder="h"),
    "TurnOpenings.opening": lambda kit, who, talk, _: _opening(kit, who, talk),
    "ConversationSessions.create": lambda kit, _, talk, __: _own_session(kit, talk),
    "ConversationSessions.exists": lambda kit, _, talk, __: kit.conversations.exists(talk),
    "ConversationSessions.delete": lambda kit, _, talk, __: kit.conversations.delete(talk),
    "ConversationDirectory.list_conversations": lambda kit, _, talk, __: (
        kit.conversations.list_conversations(tenant_id=talk.tenant_id, user_id=talk.user_id)
    ),
    "ConversationDirectory.rename_conversation": lambda kit, _, talk, __: (
        kit.conversations.rename_conversation(talk, title="stolen")
    ),
    "ConversationDirectory.set_generated_title": lambda kit, _, talk, __: (
        kit.conversations.set_generated_title(talk, title="stolen")
    ),
    "ConversationDirectory.get_title": lambda kit, _, talk, __: kit.conversations.get_title(talk),
    "WorkingMemoryStore.get": lambda kit, who, *_: kit.store.working.get(who),
    "WorkingMemoryStore.put": lambda kit, who, *_: _own_state(kit, who),
    "WorkingMemoryStore.delete": lambda kit, who, *_: kit.store.working.delete(who),
    "history": lambda kit, who, _, name: kit.store.history(who, name),
    "count": lambda kit, who, *_: kit.store.count(
        Scope("acme-corp") if who.tenant_id == "acme" else who
    ),
    "erase": lambda kit, who, *_: kit.store.erase(
        Scope("acme-corp") if who.tenant_id == "acme" else who
    ),
}
PORTS = (
    MemoryRepository, MemoryIndex, MemoryCandidates, FactStore, ConversationMessageStore,
    ConversationSessions, ConversationDirectory, WorkingMemoryStore, Exchanges,
    TurnOpenings,
)  # fmt: skip


def _methods() -> set[str]:
    return {
        f"{port.__name__}.{name}"
        for port in PORTS
        for name, member in vars(port).items()
        if inspect.iscoroutinefunction(member)
    }


async def _fill(kit: Kit) -> None:
    """Ana's rows at every scope that a colleague does not share, a chain, a talk and a state."""
    for scope in (MemoryScope.RUN, MemoryScope.SESSION, MemoryScope.USER, MemoryScope.PROJECT):
        await kit.save(ANA, f"secret zebra of {scope}", "m1", scope=scope)
    await kit.save(ANA, "secret zebra summary", scope=MemoryScope.SESSION,
                   memory_type=MemoryType.SUMMARY)  # fmt: skip
    await kit.memories.index_memory(kit.memory(ANA, "secret zebra", "m1"), [1.0, 0.0])
    old = kit.memory(ANA, "secret zebra lives in Rome", "old")
    await kit.memories.store_fact(old)
    kit.clock.move(days=1)
    new = kit.memory(ANA, "secret zebra lives in Bonn", "new")
    await kit.memories.store_fact(new, supersedes="old")
    await kit.say(ANA, "secret zebra", "another question")
    await kit.say(ANA, "secret answer", role="assistant")
    await kit.conversations.rename_conversation(TALK, title="secret title")
    await kit.store.working.put(ANA, {"secret": "zebra"}, ttl_seconds=3600)


async def _state(kit: Kit) -> list[Any]:
    """Everything that Ana sees, scores included."""
    return [
        await kit.memories.search(MemoryQuery(ANA, include_invalid=True, limit=1000)),
        await kit.memories.search_memories(_query(ANA), [1.0, 0.0]),
        await _candidates(kit, ANA, "user"),
        await kit.conversations.recent_messages(TALK, limit=99),
        await kit.conversations.list_conversations(tenant_id="acme", user_id="ana"),
        await kit.store.history(ANA, "new"),
        await kit.store.working.get(ANA),
        await kit.store.count(Scope("acme", subject="ana")),
    ]


def _talk(caller: MemoryOwner) -> ConversationIdentity:
    user = caller.user_id or caller.principal_id or ""
    return ConversationIdentity(
        caller.tenant_id, caller.principal_id, caller.session_id or "", user
    )


def test_every_port_method_has_a_question() -> None:
    assert _methods() <= set(QUESTIONS)


async def nothing_is_learned(filled: StoreMaker, bare: StoreMaker, caller: MemoryOwner) -> None:
    """`caller` gets from Ana's store what an empty one answers, and Ana's own answers stay."""
    talk = _talk(caller)
    async with Kit.of(filled) as kit, Kit.of(bare) as empty:
        await _fill(kit)
        empty.clock.now = kit.clock.now
        before = await _state(kit)
        assert all(before), "there is something to leak"
        for name, ask in QUESTIONS.items():
            for held in ("m1", "new", "old", "id of secret zebra"):
                assert await ask(kit, caller, talk, held) == await ask(empty, caller, talk, held), (
                    name
                )
            assert await _state(kit) == before, name


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("store", MAKERS)
async def test_the_wrong_owner_gets_the_answer_of_an_empty_store_and_changes_nothing(
    store: str, wrong: str, tmp_path: Path
) -> None:
    folders = [tmp_path / "filled", tmp_path / "empty"]
    for folder in folders:
        folder.mkdir()
    make = MAKERS[store]
    await nothing_is_learned(make(folders[0]), make(folders[1]), WRONG[wrong])
