"""What breaks systems of this kind, one test a kind, through the one door on every store.

Kinds that need more than this door have their tests elsewhere; docs/hazards.md names them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from muniment import (
    ConversationMessage,
    Memory,
    MemoryOwner,
    MemoryQuery,
    MemoryScope,
    OpenMemory,
    RecalledMemory,
    conversation_identity,
    open_memory,
)
from tests.servers.databases import DATABASES

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def clock() -> datetime:
    return NOW


def person(tenant: str = "acme", user: str = "ana", session: str = "s1") -> MemoryOwner:
    return MemoryOwner(tenant, user_id=user, principal_id=user, session_id=session)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenMemory]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'memory.db'}"
    if request.param == "postgres":
        url = DATABASES.lend()
    async with open_memory(url, embedder=None, clock=clock) as opened:
        yield opened


async def say(memory: OpenMemory, owner: MemoryOwner, *texts: str) -> None:
    messages = [
        ConversationMessage(f"{owner.session_id}-{hash(text)}", "user", text, NOW)  # type: ignore[arg-type]
        for text in texts
    ]
    await memory.conversations.append_messages(conversation_identity(owner), messages)


async def explained(memory: OpenMemory, owner: MemoryOwner, text: str) -> list[RecalledMemory]:
    return list(await memory.recall(owner, text, top_k=50, max_tokens=None, explain=True))


async def contents(memory: OpenMemory, owner: MemoryOwner, text: str) -> list[str]:
    return [found.memory.content for found in await explained(memory, owner, text)]


async def test_hazard_1_sibling_and_wild_card_names(memory: OpenMemory) -> None:
    names = ["acme", "acme-corp", "acme_", "acm%", "ACME", "*", "acme\\", 'ac"me', "ac,me"]
    for name in names:
        await memory.remember(person(name), f"The codeword is {name}x", trust="owner")
        await say(memory, person(name), f"We said codeword {name}y")
    for name in names:
        found = await contents(memory, person(name), "codeword")
        assert sorted(found) == sorted([f"The codeword is {name}x", f"We said codeword {name}y"])


async def test_hazard_2_foreign_ids(memory: OpenMemory) -> None:
    mine = await memory.remember(person(), "Ana keeps bees")
    for stranger in (person(user="bo"), person("acme-corp"), MemoryOwner("acme")):
        for held in (mine.memory_id, "never-existed"):
            assert await memory.manager.get(stranger, held) is None
            assert not await memory.manager.delete(stranger, held)
            assert list(await memory.history(stranger, held)) == []
    assert await memory.manager.get(person(), mine.memory_id) == mine


async def test_hazard_3_smuggled_identity(memory: OpenMemory) -> None:
    await memory.remember(person(user="bo"), "Bo keeps goats")
    forged = {"user_id": "bo", "tenant_id": "acme", "owner": {"user_id": "bo"}}
    await memory.remember(person(), "Ana keeps bees", metadata=forged)
    assert await contents(memory, person(), "keeps") == ["Ana keeps bees"]
    assert await contents(memory, person(user="bo"), "keeps") == ["Bo keeps goats"]


async def test_hazard_4_influence_across_owners(memory: OpenMemory) -> None:
    for fact in ("Ana keeps a kestrel", "Ana paints boats", "Ana keeps bees and boats"):
        await memory.remember(person(), fact)
    await say(memory, person(), "The kestrel flew over the boats")
    before = [(f.memory.memory_id, f.score) for f in await explained(memory, person(), "kestrel")]
    for number in range(40):
        await memory.remember(person("other"), f"kestrel boats {number}")
        await say(memory, person(user="bo"), f"kestrel kestrel {number}")
    after = [(f.memory.memory_id, f.score) for f in await explained(memory, person(), "kestrel")]
    assert after == before


async def test_hazard_5_deletion_at_scale(memory: OpenMemory) -> None:
    for number in range(503):
        await memory.store.memories.save(_fact(person(), f"Ana fact {number}", f"m{number}"))
    for number in range(7):
        await memory.store.memories.save(
            _fact(person(user="bo"), f"Bo fact {number}", f"m{number}")
        )
    assert (await memory.erase(MemoryOwner("acme", user_id="ana"))).entries == 503
    assert (await memory.erase(MemoryOwner("acme", user_id="ana"))).entries == 0
    assert await contents(memory, person(), "fact") == []
    assert len(await contents(memory, person(user="bo"), "fact")) == 7


async def test_hazard_6_ghosts(memory: OpenMemory) -> None:
    ghost = await memory.remember(person(), "The vault code is heliotrope")
    assert await contents(memory, person(), "heliotrope") != []
    assert await memory.manager.delete(person(), ghost.memory_id)
    query = MemoryQuery(person(), text="heliotrope", include_invalid=True)
    assert await contents(memory, person(), "heliotrope") == []
    assert list(await memory.manager.search(person(), query)) == []
    assert (await memory.context(person(session="s2"), "heliotrope")).recalled == ()


async def test_hazard_9_late_news(memory: OpenMemory) -> None:
    rome = await memory.remember(
        person(), "Ana's city is Rome", valid_from=datetime(2026, 3, 1, tzinfo=UTC)
    )
    await memory.remember(
        person(),
        "Ana's city is Bonn",
        valid_from=datetime(2026, 2, 5, tzinfo=UTC),
        replaces=rome.memory_id,
    )
    assert await contents(memory, person(), "city") == ["Ana's city is Rome"]
    then = await memory.recall(person(), "city", as_of=datetime(2026, 2, 10, tzinfo=UTC))
    assert [held.content for held in then] == ["Ana's city is Bonn"]
    edge = await memory.recall(person(), "city", as_of=datetime(2026, 3, 1, tzinfo=UTC))
    assert [held.content for held in edge] == ["Ana's city is Rome"]


@pytest.mark.parametrize(
    "instant",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=1))),
        datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=-11))),
    ],
)
async def test_hazard_10_kinds_of_time(memory: OpenMemory, instant: datetime) -> None:
    held = await memory.remember(person(), "Ana keeps bees", valid_from=instant)
    assert held.valid_from == instant
    (kept,) = await memory.history(person(), held.memory_id)
    assert kept.valid_from == instant
    for refused in (instant.replace(tzinfo=None), "2026-03-01"):
        with pytest.raises(ValueError, match="valid_from"):
            await memory.remember(person(), "Ana keeps goats", valid_from=refused)  # type: ignore[arg-type]


async def test_hazard_12_nothing_said(memory: OpenMemory) -> None:
    assert await memory.extract(person(), []) == ()
    blank = [ConversationMessage("b", "user", " \u200b ", NOW)]  # type: ignore[arg-type]
    assert await memory.extract(person(), blank) == ()
    for nothing in ("", " ", "\u200b", "?!", "the of and"):
        assert await memory.recall(person(), nothing) == ()


HOSTILE = [
    '" OR * NEAR( a-b ) : ^ zebra',
    "right \u202e to left zebra",
    "family 👨‍👩‍👧‍👦 zebra",
    "n\u0303andu\u0301 zebra",
    "zebra'; DROP TABLE memory; --",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hazard_13_hostile_text_is_found_again(memory: OpenMemory, text: str) -> None:
    await memory.remember(person(), text)
    assert text in await contents(memory, person(), text)
    assert text in await contents(memory, person(), "zebra")


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "x" * 200_000])
async def test_hazard_13_what_cannot_be_kept_is_refused_alone(
    memory: OpenMemory, text: str
) -> None:
    await memory.remember(person(), "zebra one")
    with pytest.raises(ValueError, match="content") as caught:
        await memory.remember(person(), text)
    assert text[:20] not in str(caught.value)
    await memory.recall(person(), text)
    assert await contents(memory, person(), "zebra") == ["zebra one"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("用户喜欢喝咖啡", "咖啡"),
        ("毎朝コーヒーを飲みます", "コーヒー"),
        ("เขาชอบดื่มกาแฟทุกวัน", "กาแฟ"),
        ("저는 커피를 좋아해요", "커피"),
        ("Ana wohnt in der Langen Straße", "strasse"),
        ("Она живёт в Праге", "праге"),
        ("She answers emails at night", "email"),
        ("उसे हिन्दी पसंद है", "हिन्दी"),
        ("Zoë sings in a café", "cafe zoe"),
    ],
)
async def test_hazard_14_other_languages(memory: OpenMemory, text: str, asked: str) -> None:
    await memory.remember(person(), text)
    await memory.remember(person(), "Something else entirely")
    assert (await contents(memory, person(), asked))[:1] == [text]


async def test_hazard_18_one_big_one(tmp_path: Path) -> None:
    from muniment import MemoryPolicy

    for overflow, expected in (("stop", []), ("skip", ["zebra facts are short"])):
        policy = MemoryPolicy(block_overflow=overflow)  # type: ignore[arg-type]
        async with open_memory("memory://", policy=policy, embedder=None, clock=clock) as memory:
            await memory.remember(person(), "zebra " * 800, importance=1.0)
            await memory.remember(person(), "zebra facts are short", importance=0.0)
            found: Sequence[Memory] = await memory.recall(person(), "zebra")
            assert [held.content for held in found] == expected


async def test_hazard_22_eviction(memory: OpenMemory) -> None:
    for session in ("s1", "s2", "s3"):
        await say(memory, person(session=session), f"the {session} kayak is red")
    crowd = [person("acme-corp", "mallory", f"m{number}") for number in range(2_000)]
    for start in range(0, len(crowd), 200):
        part = map(conversation_identity, crowd[start : start + 200])
        await asyncio.gather(*map(memory.conversations.create, part))
    page = await memory.conversations.list_conversations(tenant_id="acme", user_id="ana")
    assert {row.session_id for row in page.conversations} == {"s1", "s2", "s3"}
    assert [row.message_count for row in page.conversations] == [1, 1, 1]
    assert len(await contents(memory, person(), "red kayak")) == 3


@pytest.mark.parametrize("name", ["alice+work@example.org", "auth0|5f7c", "id:ü-日本", "Zoe\u0308"])
async def test_hazard_27_real_identifiers(memory: OpenMemory, name: str) -> None:
    import unicodedata

    composed = unicodedata.normalize("NFC", name)
    await memory.remember(person(name, name, name), "Ana keeps bees", scope="session")
    await say(memory, person(name, name, name), "We talked about bees")
    found = await contents(memory, person(composed, composed, composed), "bees")
    assert sorted(found) == ["Ana keeps bees", "We talked about bees"]


def _fact(owner: MemoryOwner, content: str, memory_id: str) -> Memory:
    return Memory(memory_id, MemoryScope.USER, "fact", owner, content)  # type: ignore[arg-type]
