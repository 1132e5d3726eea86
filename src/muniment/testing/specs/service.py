"""What replicas of a service share: leases and keyed requests."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from dataclasses import replace

from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.errors import NotFoundError
from muniment.ports import KeyedRequest
from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

TALK = talk_of(person())
REQUEST = KeyedRequest("print", TALK.session_id, "msg_1")


@spec(Capability.SERVICE)
async def one_holder_at_a_time_has_a_session(kit: Kit) -> None:
    service = kit.store.service
    assert await service.acquire(TALK, holder="a", ttl_seconds=30) == 0
    assert await service.acquire(TALK, holder="a", ttl_seconds=30) == 0
    kit.clock.move(seconds=10)
    assert await service.acquire(TALK, holder="b", ttl_seconds=30) == 20
    await service.release(TALK, holder="b")
    assert not await service.renew(TALK, holder="b", ttl_seconds=30)
    assert await service.acquire(TALK, holder="b", ttl_seconds=30) == 20
    await service.release(TALK, holder="a")
    assert await service.acquire(TALK, holder="b", ttl_seconds=30) == 0


@spec(Capability.SERVICE)
async def a_lease_ends_by_itself_and_is_kept_by_renewing(kit: Kit) -> None:
    service = kit.store.service
    await service.acquire(TALK, holder="a", ttl_seconds=30)
    kit.clock.move(seconds=29)
    assert await service.renew(TALK, holder="a", ttl_seconds=30)
    kit.clock.move(seconds=29)
    assert await service.acquire(TALK, holder="b", ttl_seconds=30) == 1
    kit.clock.move(seconds=1)
    assert await service.acquire(TALK, holder="b", ttl_seconds=30) == 0
    assert not await service.renew(TALK, holder="a", ttl_seconds=30)


@spec(Capability.SERVICE)
async def every_part_of_a_conversation_separates_leases(kit: Kit) -> None:
    service = kit.store.service
    await service.acquire(TALK, holder="a", ttl_seconds=30)
    for other in (person("other"), person(user="bo"), person(session="s2")):
        assert await service.acquire(talk_of(other), holder="b", ttl_seconds=30) == 0
        await service.release(talk_of(other), holder="a")
    assert await service.renew(TALK, holder="a", ttl_seconds=30)


@spec(Capability.SERVICE)
async def the_first_request_under_a_key_is_kept(kit: Kit) -> None:
    service = kit.store.service
    who = (TALK.tenant_id, TALK.user_id)
    other = KeyedRequest("other print", "s2", "msg_2")
    assert await service.begin(*who, "k", REQUEST, ttl_seconds=60) == REQUEST
    assert await service.begin(*who, "k", other, ttl_seconds=60) == REQUEST
    await service.finish(*who, "k", answer_id="msg_9", envelope="{}")
    done = await service.begin(*who, "k", other, ttl_seconds=60)
    assert done == KeyedRequest("print", TALK.session_id, "msg_1", "msg_9", "{}")
    kit.clock.move(seconds=60)
    assert await service.begin(*who, "k", other, ttl_seconds=60) == other


@spec(Capability.SERVICE)
async def keys_are_each_users_own(kit: Kit) -> None:
    service = kit.store.service
    await service.begin(TALK.tenant_id, TALK.user_id, "k", REQUEST, ttl_seconds=60)
    other = KeyedRequest("other print", "s2", "msg_2")
    for who in ((TALK.tenant_id, "bo"), ("other", TALK.user_id)):
        await service.finish(*who, "k", answer_id="msg_9", envelope="{}")
        assert await service.begin(*who, "k", other, ttl_seconds=60) == other
    mine = await service.begin(TALK.tenant_id, TALK.user_id, "k", other, ttl_seconds=60)
    assert mine == REQUEST


@spec(Capability.SERVICE)
async def leases_and_keys_end_with_their_conversation(kit: Kit) -> None:
    service, who = kit.store.service, (TALK.tenant_id, TALK.user_id)
    elsewhere = KeyedRequest("print", "s2", "msg_3")
    for end in (
        lambda: kit.conversations.delete(TALK),
        lambda: kit.store.erase(MemoryOwner(TALK.tenant_id, user_id=TALK.user_id)),
    ):
        await kit.say(person(), "hello")
        await service.acquire(TALK, holder="a", ttl_seconds=30)
        await service.begin(*who, "k", REQUEST, ttl_seconds=60)
        await service.begin(*who, "elsewhere", elsewhere, ttl_seconds=60)
        await end()
        assert not await service.renew(TALK, holder="a", ttl_seconds=30)
        changed = KeyedRequest("new print", TALK.session_id, "msg_2")
        assert await service.begin(*who, "k", changed, ttl_seconds=60) == changed
        assert await service.begin(*who, "elsewhere", changed, ttl_seconds=60) == elsewhere
        await service.finish(*who, "k", answer_id="msg_9", envelope="{}")
        kit.clock.move(seconds=60)


@spec(Capability.SERVICE)
async def an_answer_is_appended_only_while_its_lease_is_held(kit: Kit) -> None:
    await kit.store.service.acquire(TALK, holder="a", ttl_seconds=30)
    await kit.conversations.append_messages(TALK, [kit.message("question", "m1")], lease="a")
    late = kit.conversations.append_messages(TALK, [kit.message("other", "m2")], lease="b")
    await refused(NotFoundError, late)
    await kit.conversations.delete(TALK)
    late = kit.conversations.append_messages(TALK, [kit.message("answer", "m2")], lease="a")
    await refused(NotFoundError, late)
    assert not await kit.conversations.exists(TALK)


@spec(Capability.SERVICE)
async def sizes_are_counts(kit: Kit) -> None:
    sizes = await kit.store.service.sizes()
    assert sizes
    assert all(isinstance(size, int) and size >= 0 for size in sizes.values())


@spec(Capability.SERVICE)
async def memories_are_listed_by_pages_that_hold_while_they_change(kit: Kit) -> None:
    ana, bo = person(), person(user="bo")
    saved = []
    for number in range(5):
        saved.append(await kit.save(ana, f"note {number}", f"m{number}"))
        await kit.save(bo, f"not hers {number}")
        kit.clock.move(seconds=1)
    first = await kit.memories.page(MemoryQuery(ana, limit=2))
    assert [each.memory_id for each in first] == ["m4", "m3"]
    await kit.save(ana, "later", "m5")
    await kit.memories.save(replace(saved[0], content="changed", updated_at=kit.clock()))
    await kit.memories.delete(ana, "m3")
    place = (first[-1].created_at, first[-1].memory_id)
    rest = await kit.memories.page(MemoryQuery(ana, limit=9), after=place)
    assert [each.memory_id for each in rest] == ["m2", "m1", "m0"]
    preferences = MemoryQuery(ana, memory_types=(MemoryType.PREFERENCE,))
    assert not await kit.memories.page(preferences)


@spec(Capability.SERVICE)
async def memories_of_one_instant_are_each_listed_once(kit: Kit) -> None:
    for number in range(5):
        await kit.save(person(), f"note {number}", f"m{number}")
    seen: list[str] = []
    place = None
    while page := await kit.memories.page(MemoryQuery(person(), limit=2), after=place):
        seen += [each.memory_id for each in page]
        place = (page[-1].created_at, page[-1].memory_id)
    assert seen == [f"m{number}" for number in range(5)]
