"""Erasure that follows derivation, its receipt, and sweeping what has expired."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.governance.receipts import erasure_digest, parse_receipt
from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.registry import Capability, spec

ANA, BO = person(project_id="p1"), person(user="bo", project_id="p1")
REALM_OF_ANA = Scope("acme", subject="ana")
SESSION = Scope("acme", subject="ana", session="s1")


async def _ids(kit: Kit, *ids: str) -> set[str]:
    """Which of these are there, for either of the two."""
    return {name for name in ids for who in (ANA, BO) if await kit.memories.get(who, name)}


async def _shared(kit: Kit, memory_id: str) -> Memory:
    return await kit.save(
        ANA, f"ana's {memory_id} for the project", memory_id, scope=MemoryScope.PROJECT
    )


async def _heard(kit: Kit, memory_id: str, *messages: str, **fields: Any) -> Memory:
    sources = tuple(f"id of {message}" for message in messages)
    fields = {"source_session_id": "s1", "source_message_ids": sources, **fields}
    return await kit.save(ANA, f"a fact: {memory_id}", memory_id, **fields)


@spec(Capability.ERASURE)
async def what_was_derived_from_erased_memories_alone_goes_too(kit: Kit) -> None:
    await _shared(kit, "m1")
    await kit.save(BO, "bo's own", "own")
    await kit.save(BO, "from ana alone", "alone", derived_from=("m1",))
    await kit.save(BO, "from both", "both", derived_from=("m1", "own"))
    result = await kit.store.erase(REALM_OF_ANA)
    assert (result.entries, result.derived) == (1, 1)
    assert await _ids(kit, "m1", "own", "alone", "both") == {"own", "both"}
    assert "from ana alone" not in await kit.recalled_contents(BO, "from ana alone")
    left = await kit.memories.get(BO, "both")
    assert left is not None
    assert left.derived_from == ("own",)


@spec(Capability.ERASURE)
async def derivation_is_followed_to_its_end(kit: Kit) -> None:
    await _shared(kit, "m1")
    await kit.save(BO, "bo's own", "own")
    await kit.save(BO, "first", "d1", derived_from=("m1",))
    await kit.save(BO, "second", "d2", derived_from=("d1", "m1"))
    await kit.save(BO, "third", "d3", derived_from=("d2",))
    await kit.save(BO, "held by its own", "d4", derived_from=("d2", "own"))
    await kit.save(BO, "held by what is held", "d5", derived_from=("d3", "d4"))
    result = await kit.store.erase(REALM_OF_ANA)
    assert (result.entries, result.derived) == (1, 3)
    assert await _ids(kit, "d1", "d2", "d3", "d4", "d5") == {"d4", "d5"}
    left = await kit.memories.get(BO, "d5")
    assert left is not None
    assert left.derived_from == ("d4",)
    assert (await kit.store.erase(REALM_OF_ANA)).derived == 0


@spec(Capability.ERASURE)
async def rows_that_hold_up_only_each_other_fall(kit: Kit) -> None:
    await _shared(kit, "m1")
    await kit.save(BO, "one", "d1", derived_from=("m1",))
    await kit.save(BO, "two", "d2", derived_from=("d1",))
    await kit.save(BO, "one", "d1", derived_from=("m1", "d2"))
    assert (await kit.store.erase(REALM_OF_ANA)).derived == 2
    assert await _ids(kit, "d1", "d2") == set()


@spec(Capability.ERASURE)
async def without_cascade_what_is_outside_stays_as_it_is(kit: Kit) -> None:
    await _shared(kit, "m1")
    await kit.save(BO, "from ana alone", "alone", derived_from=("m1",))
    result = await kit.store.erase(REALM_OF_ANA, cascade=False)
    assert (result.entries, result.derived) == (1, 0)
    held = await kit.memories.get(BO, "alone")
    assert held is not None
    assert held.derived_from == ("m1",)


@spec(Capability.ERASURE)
async def facts_of_an_erased_session_go_and_others_stay(kit: Kit) -> None:
    await kit.say(ANA, "I live in Rome")
    await kit.say(person(session="s2", project_id="p1"), "I work in Oslo")
    await _heard(kit, "rome", "I live in Rome")
    await _heard(kit, "oslo", "I work in Oslo", source_session_id="s2")
    await _heard(kit, "told", source_session_id="s1")
    await kit.save(ANA, "by hand", "hand")
    result = await kit.store.erase(SESSION)
    assert (result.entries, result.derived, result.messages) == (0, 1, 1)
    assert await _ids(kit, "rome", "oslo", "told", "hand") == {"oslo", "told", "hand"}
    told = await kit.memories.get(ANA, "told")
    assert told is not None
    assert told.source_session_id is None


@spec(Capability.ERASURE)
async def a_fact_with_another_source_outlives_its_session(kit: Kit) -> None:
    await kit.say(ANA, "I live in Rome")
    await kit.save(ANA, "by hand", "hand")
    await _heard(kit, "rome", "I live in Rome", derived_from=("hand",))
    await kit.say(person(session="s2", project_id="p1"), "still in Rome")
    await kit.save(ANA, "of the session", "narrow", scope=MemoryScope.SESSION)
    await _heard(kit, "still", "still in Rome", source_session_id="s2", derived_from=("narrow",))
    result = await kit.store.erase(SESSION)
    assert (result.entries, result.derived) == (1, 0)
    rome = await kit.memories.get(ANA, "rome")
    still = await kit.memories.get(ANA, "still")
    assert rome is not None
    assert still is not None
    assert (rome.source_session_id, rome.source_message_ids) == (None, ())
    assert rome.derived_from == ("hand",)
    assert (still.derived_from, still.source_message_ids) == ((), ("id of still in Rome",))


@spec(Capability.ERASURE)
async def a_summary_falls_with_any_message_it_covers(kit: Kit) -> None:
    await kit.say(ANA, "I live in Rome")
    await kit.save(ANA, "by hand", "hand")
    await _heard(
        kit, "summary", "I live in Rome", memory_type=MemoryType.SUMMARY, derived_from=("hand",)
    )
    await kit.save(ANA, "from the summary", "after", derived_from=("summary",))
    result = await kit.store.erase(SESSION)
    assert (result.entries, result.derived) == (0, 2)
    assert await _ids(kit, "summary", "after", "hand") == {"hand"}


@spec(Capability.ERASURE)
async def sessions_of_the_same_name_are_each_users_own(kit: Kit) -> None:
    await kit.say(BO, "hello")
    await kit.save(
        BO, "heard by bo", "heard", source_session_id="s1", source_message_ids=("id of hello",)
    )
    assert (await kit.store.erase(SESSION)).derived == 0
    assert await _ids(kit, "heard") == {"heard"}


@spec(Capability.ERASURE)
async def deleting_a_conversation_leaves_the_users_memories(kit: Kit) -> None:
    await kit.say(ANA, "I live in Rome")
    await _heard(kit, "rome", "I live in Rome")
    assert await kit.conversations.delete(talk_of(ANA))
    assert await _ids(kit, "rome") == {"rome"}


@spec(Capability.ERASURE)
async def what_a_fallen_row_had_replaced_is_current_again(kit: Kit) -> None:
    """Hazard 19."""
    await _shared(kit, "m1")
    await kit.memories.store_fact(kit.memory(BO, "lives in Rome", "rome"))
    moved = kit.memory(BO, "lives in Oslo", "oslo", derived_from=("m1",))
    assert (await kit.memories.store_fact(moved, supersedes="rome")).superseded == "rome"
    assert (await kit.store.erase(REALM_OF_ANA)).derived == 1
    assert await kit.found(BO) == ["lives in Rome"]


@spec(Capability.ERASURE)
async def a_receipt_holds_the_digest_of_what_is_gone(kit: Kit) -> None:
    await _shared(kit, "m1")
    await kit.save(BO, "from ana alone", "d1", derived_from=("m1",))
    await kit.say(ANA, "hello")
    result = await kit.store.erase(REALM_OF_ANA)
    assert result.receipt is not None
    receipt = parse_receipt(result.receipt)
    assert receipt.digest == erasure_digest(["m1", "d1", "s1", "id of hello"])
    again = await kit.store.erase(REALM_OF_ANA)
    assert (again.entries, again.derived, again.sessions, again.messages) == (0, 0, 0, 0)
    assert (again.receipt, again.pending) == (None, False)


@spec(Capability.ERASURE)
async def two_erasures_have_two_receipts(kit: Kit) -> None:
    await kit.save(ANA, "the same", "m1")
    first = await kit.store.erase(REALM_OF_ANA)
    await kit.save(ANA, "the same", "m1")
    second = await kit.store.erase(REALM_OF_ANA)
    assert first.receipt is not None
    assert second.receipt is not None
    assert first.receipt != second.receipt
    assert parse_receipt(first.receipt).digest == parse_receipt(second.receipt).digest


@spec(Capability.ERASURE)
async def the_wrong_realm_erases_and_sweeps_nothing(kit: Kit) -> None:
    await kit.save(ANA, "zebra", "m1", expires_at=kit.clock() + timedelta(hours=1))
    kit.clock.move(days=1)
    for realm in (Scope("acm"), Scope("ACME"), Scope("acme", subject="bo"), Scope("acme-corp")):
        result = await kit.store.erase(realm)
        assert (result.entries, result.derived, result.receipt) == (0, 0, None)
        assert await kit.store.sweep_expired(realm) == 0
    assert await kit.store.count(REALM_OF_ANA) == 1


@spec(Capability.ERASURE)
async def sweeping_removes_what_has_expired_and_nothing_else(kit: Kit) -> None:
    soon = kit.clock() + timedelta(hours=1)
    await kit.save(ANA, "over", "m1", expires_at=soon)
    await kit.save(ANA, "lasting", "m2")
    await kit.save(ANA, "later", "m3", expires_at=soon + timedelta(days=9))
    await kit.save(BO, "bo's over", "m4", expires_at=soon)
    await kit.say(ANA, "hello")
    kit.clock.move(hours=1)
    assert await kit.store.sweep_expired(REALM_OF_ANA) == 1
    assert await kit.store.count(Scope("acme")) == 3
    assert await kit.said(ANA) == ["hello"]
    assert await kit.store.sweep_expired(REALM_OF_ANA) == 0
    assert await kit.store.sweep_expired(Scope("acme")) == 1


@spec(Capability.ERASURE)
async def what_a_swept_memory_had_replaced_stays_closed(kit: Kit) -> None:
    await kit.memories.store_fact(kit.memory(ANA, "lives in Rome", "rome"))
    kit.clock.move(hours=1)
    oslo = kit.memory(ANA, "lives in Oslo", "oslo", expires_at=kit.clock() + timedelta(hours=1))
    await kit.memories.store_fact(oslo, supersedes="rome")
    kit.clock.move(hours=2)
    assert await kit.store.sweep_expired(REALM_OF_ANA) == 1
    assert await kit.found(ANA) == []
    rome = await kit.memories.get(ANA, "rome")
    assert rome is not None
    assert rome.superseded_by == "oslo"


@spec(Capability.ERASURE)
async def compacting_and_reindexing_lose_nothing(kit: Kit) -> None:
    await kit.save(ANA, "zebra one", "m1")
    await kit.say(ANA, "zebra said")
    await kit.save(BO, "zebra two", "m2")
    await kit.store.erase(Scope("acme", subject="bo"))
    before = await kit.recalled(ANA, "zebra")
    await kit.store.compact()
    await kit.store.reindex()
    assert await kit.recalled(ANA, "zebra") == before
    assert await kit.recalled(BO, "zebra") == ()


@spec(Capability.ERASURE)
async def a_preview_counts_what_an_erasure_removes_and_changes_nothing(kit: Kit) -> None:
    await _shared(kit, "m1")
    await kit.save(BO, "from ana alone", "alone", derived_from=("m1",))
    await kit.say(ANA, "a word")
    await kit.store.working.put(replace(ANA, run_id="r1"), {"step": 1}, ttl_seconds=60)
    for cascade in (True, False):
        counted = await kit.store.erase(REALM_OF_ANA, cascade=cascade, preview=True)
        assert (counted.entries, counted.derived) == (1, int(cascade))
        assert (counted.sessions, counted.messages, counted.working_states) == (1, 1, 1)
        assert (counted.receipt, counted.pending) == (None, False)
    assert await _ids(kit, "m1", "alone") == {"m1", "alone"}
    assert await kit.recalled_contents(ANA, "a word", messages="user") == ["a word"]
    counted = await kit.store.erase(REALM_OF_ANA, preview=True)
    result = await kit.store.erase(REALM_OF_ANA)
    assert replace(result, receipt=None, pending=False) == counted
