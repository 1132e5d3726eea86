"""Counting, history and erasure by realm."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from datetime import timedelta

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.registry import Capability, spec

ANA, BO = person(project_id="p1"), person(user="bo", project_id="p1")


async def _fill(kit: Kit) -> None:
    for owner in (ANA, BO, person("other"), person("acme_", project_id="p1")):
        await kit.say(owner, f"zebra said by {owner.user_id}")
        await kit.save(owner, f"zebra of {owner.user_id}")
        await kit.save(owner, "zebra of this session", scope=MemoryScope.SESSION)
        run = person(owner.tenant_id, owner.user_id or "", run_id="r1")
        await kit.store.working.put(run, {"zebra": 1}, ttl_seconds=60)
    await kit.save(ANA, "zebra of the project", scope=MemoryScope.PROJECT)


@spec(Capability.REALMS)
async def a_realm_counts_what_belongs_to_it(kit: Kit) -> None:
    await _fill(kit)
    await kit.save(ANA, "gone soon", expires_at=kit.clock() + timedelta(seconds=1))
    kit.clock.move(days=1)
    assert await kit.store.count(Scope("acme")) == 6
    assert await kit.store.count(Scope("acme", subject="ana")) == 4
    assert await kit.store.count(Scope("acme", subject="ana", session="s1")) == 1
    assert await kit.store.count(Scope("acme", agent="helper")) == 0
    assert await kit.store.count(Scope("acm")) == 0


@spec(Capability.REALMS)
async def erasing_a_user_leaves_nothing_of_it_and_all_of_the_others(kit: Kit) -> None:
    await _fill(kit)
    result = await kit.store.erase(Scope("acme", subject="ana"))
    assert (result.entries, result.sessions, result.messages, result.working_states) == (3, 1, 1, 1)
    assert await kit.found(ANA) == []
    assert await kit.recalled(ANA, "zebra") == ()
    assert await kit.said(ANA) == []
    assert not await kit.conversations.exists(talk_of(ANA))
    assert await kit.store.working.get(person(run_id="r1")) is None
    for other in (BO, person("other"), person("acme_", project_id="p1")):
        assert len(await kit.recalled(other, "zebra")) == 3
        assert await kit.store.working.get(
            person(other.tenant_id, other.user_id or "", run_id="r1")
        ) == {"zebra": 1}
    again = await kit.store.erase(Scope("acme", subject="ana"))
    assert (again.entries, again.sessions, again.messages, again.working_states) == (0, 0, 0, 0)


@spec(Capability.REALMS)
async def erasing_a_session_leaves_the_users_own_memories(kit: Kit) -> None:
    await _fill(kit)
    result = await kit.store.erase(Scope("acme", subject="ana", session="s1"))
    assert (result.entries, result.sessions, result.messages) == (1, 1, 1)
    assert sorted(await kit.found(ANA)) == ["zebra of ana", "zebra of the project"]


@spec(Capability.REALMS)
async def an_owner_whose_name_fits_no_realm_can_be_erased(kit: Kit) -> None:
    odd = MemoryOwner("a tenant/with = signs", user_id="100% odd", principal_id="p")
    await kit.save(odd, "odd row")
    assert await kit.store.count(odd) == 1
    assert (await kit.store.erase(odd)).entries == 1
    assert await kit.found(odd) == []


@spec(Capability.REALMS)
async def history_by_realm_knows_expired_rows_and_nothing_foreign(kit: Kit) -> None:
    await kit.save(ANA, "old", "m1", expires_at=kit.clock() + timedelta(seconds=1))
    kit.clock.move(days=1)
    assert [m.memory_id for m in await kit.store.history(Scope("acme"), "m1")] == ["m1"]
    assert list(await kit.store.history(ANA, "m1")) == []
    for realm in (Scope("other"), Scope("acme", subject="bo"), Scope("ACME")):
        assert list(await kit.store.history(realm, "m1")) == []


@spec(Capability.REALMS)
async def many_rows_beside_few_are_erased_exactly(kit: Kit) -> None:
    for number in range(203):
        await kit.save(ANA, f"row {number}")
    for number in range(7):
        await kit.save(BO, f"row {number}")
    assert (await kit.store.erase(Scope("acme", subject="ana"))).entries == 203
    assert await kit.store.count(Scope("acme")) == 7
    assert len(await kit.found(BO, "row", limit=1000)) == 7
    assert (await kit.store.erase(Scope("acme", subject="ana"))).entries == 0
