"""Usage: what is stored, and what searches served."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from datetime import timedelta

from muniment.context.policy import MemoryPolicy
from muniment.context.recall import MemoryRecall
from muniment.domain.realm import Scope
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ANA, BO = person(), person(user="bo")


@spec(Capability.USAGE)
async def stored_figures_are_the_realms(kit: Kit) -> None:
    await kit.save(ANA, "x" * 9, "m1")
    await kit.save(ANA, "x" * 10, "m2", expires_at=kit.clock() + timedelta(seconds=1))
    await kit.save(BO, "x" * 30, "m3")
    await kit.save(person("other"), "x" * 300)
    kit.clock.move(days=1)
    acme = await kit.store.usage(Scope("acme"))
    assert (acme.entries, acme.stored_tokens) == (3, 17)
    ana = await kit.store.usage(Scope("acme", subject="ana"))
    assert (ana.entries, ana.stored_tokens) == (2, 7)
    nobody = await kit.store.usage(Scope("acm"))
    assert (nobody.entries, nobody.stored_tokens, nobody.searches) == (0, 0, 0)


@spec(Capability.USAGE)
async def served_figures_are_the_tenants_by_utc_day(kit: Kit) -> None:
    kit.store.note_served("acme", 3, 20)
    kit.store.note_served("acme", 0, 0)
    kit.store.note_served("other", 1, 1)
    today = await kit.store.usage(Scope("acme", subject="bo"))
    assert today.period == "2026-03-10"
    assert (today.searches, today.served_entries, today.served_tokens) == (2, 3, 20)
    kit.clock.move(hours=12)
    kit.store.note_served("acme", 1, 4)
    assert (await kit.store.usage(Scope("acme"))).served_tokens == 4
    before = await kit.store.usage(Scope("acme"), period="2026-03-10")
    assert (before.period, before.searches, before.served_tokens) == ("2026-03-10", 2, 20)


@spec(Capability.USAGE)
async def what_recall_gives_out_is_counted(kit: Kit) -> None:
    await kit.save(ANA, "zebra one", "m1")
    await kit.save(BO, "zebra two", "m2")
    recall = MemoryRecall(policy=MemoryPolicy(), memories=kit.memories, clock=kit.clock)
    assert len(await recall.recall(ANA, "zebra")) == 1
    assert await recall.recall(ANA, "giraffe") == ()
    served = await kit.store.usage(Scope("acme"))
    assert (served.searches, served.served_entries, served.served_tokens) == (2, 1, 3)


@spec(Capability.USAGE)
async def a_period_is_one_day_of_the_calendar(kit: Kit) -> None:
    no_days = ("2026-02-30", "2026-03", "20260310", "today", "", "2026-03-10T00:00", "²026-03-10")
    for period in no_days:
        error = await refused(ValueError, kit.store.usage(Scope("acme"), period=period))
        assert str(error).startswith("period: ")


@spec(Capability.USAGE)
async def a_tenants_erasure_takes_its_served_figures_along(kit: Kit) -> None:
    for tenant in ("acme", "other"):
        kit.store.note_served(tenant, 1, 5)
        await kit.store.usage(Scope(tenant))
        kit.store.note_served(tenant, 1, 5)
    await kit.store.erase(Scope("acme", subject="ana"))
    assert (await kit.store.usage(Scope("acme"))).searches == 2
    await kit.store.erase(Scope("acme"))
    assert (await kit.store.usage(Scope("acme"))).searches == 0
    assert (await kit.store.usage(Scope("other"))).searches == 2
