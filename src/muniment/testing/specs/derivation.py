"""What a memory may be derived from, and with what trust."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from datetime import timedelta

from muniment.domain.memory import Memory
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ANA, BO = person(project_id="p1"), person(user="bo", project_id="p1")


def _derived(kit: Kit, *sources: str, **fields: object) -> Memory:
    return kit.memory(ANA, "a zebra, it follows", "derived", derived_from=sources, **fields)


@spec(Capability.DERIVATION)
async def a_memory_names_what_it_is_derived_from(kit: Kit) -> None:
    await kit.save(ANA, "one", "m1")
    await kit.save(BO, "two", "m2", scope=MemoryScope.PROJECT)
    await kit.memories.save(_derived(kit, "m1", "m2"))
    held = await kit.memories.get(ANA, "derived")
    assert held is not None
    assert held.derived_from == ("m1", "m2")


@spec(Capability.DERIVATION)
async def a_foreign_source_is_refused_like_an_absent_one(kit: Kit) -> None:
    await kit.save(BO, "of another user", "m1")
    await kit.save(person("other"), "of another tenant", "m2")
    await kit.save(person(session="s2"), "of another session", "m3", scope=MemoryScope.SESSION)
    answers = set[str]()
    for source in ("m1", "m2", "m3", "never was"):
        error = await refused(InvalidEntryError, kit.memories.save(_derived(kit, source)))
        answers.add(str(error))
        error = await refused(InvalidEntryError, kit.memories.store_fact(_derived(kit, source)))
        answers.add(str(error))
    assert len(answers) == 1
    assert answers.pop().startswith("derived_from: ")
    assert await kit.memories.get(ANA, "derived") is None


@spec(Capability.DERIVATION)
async def an_expired_source_and_the_row_itself_are_no_sources(kit: Kit) -> None:
    await kit.save(ANA, "short", "m1", expires_at=kit.clock() + timedelta(seconds=1))
    kit.clock.move(seconds=2)
    await refused(InvalidEntryError, kit.memories.save(_derived(kit, "m1")))
    await kit.save(ANA, "plain", "derived")
    await refused(InvalidEntryError, kit.memories.save(_derived(kit, "derived")))


@spec(Capability.DERIVATION)
async def a_source_that_went_since_does_not_stand_in_an_updates_way(kit: Kit) -> None:
    await kit.save(ANA, "one", "m1")
    await kit.save(ANA, "two", "m2")
    await kit.memories.save(_derived(kit, "m1", "m2"))
    await kit.memories.delete(ANA, "m1")
    saved = await kit.memories.save(_derived(kit, "m1", "m2", importance=0.9))
    assert saved.derived_from == ("m1", "m2")
    await refused(InvalidEntryError, kit.memories.save(_derived(kit, "m1", "m2", "m3")))


@spec(Capability.DERIVATION)
async def trust_never_rises_above_the_lowest_source(kit: Kit) -> None:
    await kit.save(ANA, "pasted", "m1", trust=Trust.UNTRUSTED)
    await kit.save(ANA, "said", "m2", trust=Trust.OWNER)
    await kit.save(ANA, "proposed", "m3", trust=Trust.MODEL)
    for call in (kit.memories.save, kit.memories.store_fact):
        error = await refused(InvalidEntryError, call(_derived(kit, "m2", "m1", trust=Trust.MODEL)))
        assert str(error).startswith("trust: ")
    assert await kit.memories.get(ANA, "derived") is None
    assert (await kit.memories.save(_derived(kit, "m2", "m3", trust=Trust.MODEL))).trust == "model"
    assert (await kit.memories.save(_derived(kit, "m1", trust=Trust.UNTRUSTED))).trust < "model"


@spec(Capability.DERIVATION)
async def an_owners_own_word_is_above_its_sources(kit: Kit) -> None:
    await kit.save(ANA, "pasted", "m1", trust=Trust.UNTRUSTED)
    assert (await kit.memories.save(_derived(kit, "m1", trust=Trust.OWNER))).trust == "owner"
