"""Quotas: exactly at the limit passes, one beyond changes nothing."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

import re

from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.errors import InvalidEntryError, QuotaExceededError
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ANA, BO, OTHER = person(), person(user="bo"), person("other")


@spec(Capability.QUOTAS)
async def memories_are_stored_up_to_the_quota_exactly(kit: Kit) -> None:
    await kit.reopen(quota_entries=2)
    await kit.save(ANA, "one", "m1")
    await kit.memories.store_fact(kit.memory(BO, "two", "m2"))
    error = await refused(QuotaExceededError, kit.save(ANA, "three", "m3"))
    assert not re.search(r"\d", str(error))
    await refused(QuotaExceededError, kit.memories.store_fact(kit.memory(BO, "three", "m3")))
    assert await kit.store.count(Scope("acme")) == 2
    assert await kit.found(ANA) == ["one"]
    await kit.save(OTHER, "of another tenant")


@spec(Capability.QUOTAS)
async def tokens_are_stored_up_to_the_quota_exactly(kit: Kit) -> None:
    await kit.reopen(quota_tokens=10)
    await kit.save(ANA, "x" * 15, "m1")
    await kit.save(ANA, "y" * 15, "m2")
    await refused(QuotaExceededError, kit.save(ANA, "z", "m3"))
    await refused(QuotaExceededError, kit.save(ANA, "x" * 16, "m1"))
    assert sorted(await kit.found(ANA)) == ["x" * 15, "y" * 15]
    await kit.save(ANA, "x" * 3, "m1")
    await kit.save(ANA, "z" * 12, "m3")


@spec(Capability.QUOTAS)
async def room_is_made_by_deleting_erasing_and_sweeping(kit: Kit) -> None:
    await kit.reopen(quota_entries=1)
    await kit.save(ANA, "one", "m1")
    await kit.memories.delete(ANA, "m1")
    await kit.save(ANA, "two", "m2")
    await kit.store.erase(Scope("acme"))
    soon = kit.clock.move(hours=1)
    await kit.save(ANA, "three", "m3", created_at=soon, expires_at=kit.clock.move(hours=1))
    await refused(QuotaExceededError, kit.save(ANA, "four", "m4"))
    assert await kit.store.sweep_expired(Scope("acme")) == 1
    await kit.save(ANA, "four", "m4")


@spec(Capability.QUOTAS)
async def a_write_that_does_not_grow_passes_at_the_limit(kit: Kit) -> None:
    await kit.reopen(quota_entries=1, quota_tokens=2)
    await kit.save(ANA, "sixsix", "m1")
    await kit.save(ANA, "sixsix", "m1", importance=0.9)
    await kit.memories.index_memory(kit.memory(ANA, "sixsix", "m1"), [0.5] * 8)
    assert not (await kit.memories.store_fact(kit.memory(ANA, "SIXSIX", "m2"))).created


@spec(Capability.QUOTAS)
async def a_replacement_needs_a_slot_and_changes_nothing_without_one(kit: Kit) -> None:
    await kit.reopen(quota_entries=1)
    await kit.memories.store_fact(kit.memory(ANA, "lives in Rome", "rome"))
    oslo = kit.memory(ANA, "lives in Oslo", "oslo")
    await refused(QuotaExceededError, kit.memories.store_fact(oslo, supersedes="rome"))
    rome = await kit.memories.get(ANA, "rome")
    assert rome is not None
    assert (rome.superseded_by, rome.invalid_at) == (None, None)
    assert await kit.found(ANA) == ["lives in Rome"]


@spec(Capability.QUOTAS)
async def messages_take_no_part_in_quotas(kit: Kit) -> None:
    await kit.reopen(quota_entries=1, quota_tokens=1)
    await kit.say(ANA, "a long message of many words")
    await kit.save(ANA, "one", "m1")


@spec(Capability.QUOTAS)
async def the_stores_own_estimator_counts_for_quota_and_budget(kit: Kit) -> None:
    await kit.reopen(quota_tokens=3, token_estimator=lambda text: len(text.split()))
    await kit.save(ANA, "two words", "m1")
    await refused(QuotaExceededError, kit.save(ANA, "two more", "m2"))
    await kit.save(ANA, "word", "m3")
    assert await kit.found(ANA, "word", max_tokens=1) == ["word"]
    assert (await kit.store.usage(Scope("acme"))).stored_tokens == 3


@spec(Capability.QUOTAS)
async def a_shared_scope_counts_for_its_writers_tenant(kit: Kit) -> None:
    await kit.reopen(quota_entries=1)
    await kit.save(ANA, "for all of acme", scope=MemoryScope.TENANT)
    await refused(QuotaExceededError, kit.save(BO, "another"))


@spec(Capability.QUOTAS)
async def the_longest_text_is_the_stores_own(kit: Kit) -> None:
    await kit.reopen(max_text_bytes=10)
    await kit.save(ANA, "ten bytes!", "m1")
    error = await refused(InvalidEntryError, kit.save(ANA, "eleven byte", "m2"))
    assert str(error).startswith("content: ")
