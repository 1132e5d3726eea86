"""What must hold after a restart."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.registry import Capability, spec

ANA = person()


@spec(Capability.DURABILITY)
async def everything_is_there_after_a_restart(kit: Kit) -> None:
    run = person(run_id="r1")
    await kit.save(ANA, "zebra saved")
    await kit.say(ANA, "zebra said")
    await kit.conversations.rename_conversation(talk_of(ANA), title="Trip")
    await kit.store.working.put(run, {"step": 1}, ttl_seconds=60)
    before = await kit.recalled(ANA, "zebra")
    await kit.reopen()
    assert await kit.recalled(ANA, "zebra") == before
    assert await kit.said(ANA) == ["zebra said"]
    assert await kit.conversations.get_title(talk_of(ANA)) == "Trip"
    assert await kit.store.working.get(run) == {"step": 1}


@spec(Capability.DURABILITY)
async def what_was_deleted_stays_gone_after_a_restart(kit: Kit) -> None:
    await kit.save(ANA, "zebra saved", "m1")
    await kit.say(ANA, "zebra said")
    await kit.memories.delete(ANA, "m1")
    await kit.conversations.clear_messages(talk_of(ANA))
    await kit.reopen()
    assert await kit.recalled(ANA, "zebra") == ()
    assert await kit.found(ANA) == []


@spec(Capability.DURABILITY)
async def a_fact_is_still_stored_once_after_a_restart(kit: Kit) -> None:
    assert (await kit.memories.store_fact(kit.memory(ANA, "Ana lives in Rome", "m1"))).created
    await kit.reopen()
    assert not (await kit.memories.store_fact(kit.memory(ANA, "ana lives in rome", "m2"))).created


@spec(Capability.DURABILITY)
async def a_cursor_goes_on_after_a_restart(kit: Kit) -> None:
    for number in range(3):
        await kit.say(person(session=f"s{number}"), "hello")
    first = await kit.conversations.list_conversations(tenant_id="acme", user_id="ana", limit=2)
    await kit.reopen()
    rest = await kit.conversations.list_conversations(
        tenant_id="acme", user_id="ana", cursor=first.next_cursor
    )
    assert [row.session_id for row in rest.conversations] == ["s0"]
