"""Facts that exist once, replace each other, and come back."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

from muniment.domain.memory import Memory
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.ports import StoredFact
from muniment.testing.kit import Kit, person
from muniment.testing.registry import Capability, spec

ANA, BO = person(), person(user="bo")


async def _learn(
    kit: Kit, content: str, memory_id: str, *, since: datetime | None = None,
    replaces: str | None = None,
) -> StoredFact:  # fmt: skip
    fact = kit.memory(ANA, content, memory_id, valid_from=since or kit.clock())
    return await kit.memories.store_fact(fact, supersedes=replaces)


async def _never_overlapping(kit: Kit, *ids: str) -> None:
    history = await kit.store.history(ANA, ids[0])
    assert [memory.memory_id for memory in history] == list(ids)
    for earlier, later in itertools.pairwise(history):
        assert earlier.invalid_at == later.valid_from


@spec(Capability.FACTS)
async def another_writer_of_a_shared_fact_is_told_the_fact_alone(kit: Kit) -> None:
    bo = person(user="bo", project_id="p1", session="s2")
    for scope in (MemoryScope.PROJECT, MemoryScope.TENANT):
        first = kit.memory(
            person(project_id="p1"), f"the office of the {scope} is in Rome", scope=scope,
            metadata={"note": "private"}, source="interview", source_session_id="s1",
            source_message_ids=("q1",), entity_ids=("e1",), agent_id="helper",
        )  # fmt: skip
        await kit.memories.store_fact(first)
        answer = await kit.memories.store_fact(
            kit.memory(bo, first.content.upper(), "other", scope=scope)
        )
        known = answer.memory
        assert not answer.created
        assert (known.memory_id, known.content) == (first.memory_id, first.content)
        assert (known.owner.user_id, known.owner.session_id, dict(known.metadata)) == (
            None,
            None,
            {},
        )
        assert (known.source, known.agent_id, known.source_session_id) == (None, None, None)
        assert (known.source_message_ids, known.entity_ids) == ((), ())
        again = await kit.memories.store_fact(first)
        assert again.memory.source == "interview"


@spec(Capability.FACTS)
async def the_same_fact_is_stored_once(kit: Kit) -> None:
    first = await _learn(kit, "Ana lives in Rome", "m1")
    again = await _learn(kit, "  ana LIVES in\trome ", "m2")
    assert (first.created, again.created) == (True, False)
    assert again.memory.memory_id == "m1"
    assert await kit.found(ANA) == ["Ana lives in Rome"]
    other = await kit.memories.store_fact(kit.memory(BO, "Ana lives in Rome", "m3"))
    assert other.created


@spec(Capability.FACTS)
async def a_fact_that_save_stored_is_not_stored_again(kit: Kit) -> None:
    await kit.save(ANA, "Ana lives in Rome", "m1")
    assert not (await _learn(kit, "Ana lives in Rome", "m2")).created


@spec(Capability.FACTS)
async def two_at_once_store_one_live_fact(kit: Kit) -> None:
    answers = await asyncio.gather(
        *(_learn(kit, "Ana lives in Rome", f"m{number}") for number in range(8))
    )
    assert sum(answer.created for answer in answers) == 1
    assert await kit.found(ANA) == ["Ana lives in Rome"]


@spec(Capability.FACTS)
async def two_at_once_give_one_successor(kit: Kit) -> None:
    await _learn(kit, "Ana lives in Rome", "m0")
    kit.clock.move(days=1)
    answers = await asyncio.gather(
        *(_learn(kit, f"Ana lives in city {n}", f"m{n}", replaces="m0") for n in range(1, 9))
    )
    assert sum(answer.superseded == "m0" for answer in answers) == 1
    closed = await kit.memories.get(ANA, "m0")
    assert closed is not None
    assert closed.superseded_by is not None


@spec(Capability.FACTS)
async def a_replacement_closes_the_old_fact_and_keeps_it(kit: Kit) -> None:
    await _learn(kit, "Ana lives in Rome", "m1")
    then = kit.clock()
    now = kit.clock.move(days=1)
    stored = await _learn(kit, "Ana lives in Bonn", "m2", replaces="m1")
    assert stored.superseded == "m1"
    for text in (None, "where does Ana live"):
        assert await kit.found(ANA, text) == ["Ana lives in Bonn"]
        assert await kit.found(ANA, text, as_of=then) == ["Ana lives in Rome"]
    old = await kit.memories.get(ANA, "m1")
    assert old is not None
    assert (old.invalid_at, old.superseded_by) == (now, "m2")
    await _never_overlapping(kit, "m1", "m2")


@spec(Capability.FACTS)
async def a_replacement_at_the_same_instant_still_follows(kit: Kit) -> None:
    await _learn(kit, "Ana lives in Rome", "m1")
    await _learn(kit, "Ana lives in Bonn", "m2", replaces="m1")
    await _learn(kit, "Ana lives in Oslo", "m3", replaces="m2")
    assert await kit.found(ANA) == ["Ana lives in Oslo"]
    await _never_overlapping(kit, "m1", "m2", "m3")


@spec(Capability.FACTS)
async def what_is_replaced_already_is_not_replaced_again(kit: Kit) -> None:
    await _learn(kit, "Ana lives in Rome", "m1")
    kit.clock.move(days=1)
    await _learn(kit, "Ana lives in Bonn", "m2", replaces="m1")
    kit.clock.move(days=1)
    late = await _learn(kit, "Ana lives in Oslo", "m3", replaces="m1")
    assert late.created
    assert late.superseded is None
    old = await kit.memories.get(ANA, "m1")
    assert old is not None
    assert old.superseded_by == "m2"


@spec(Capability.FACTS)
async def a_foreign_or_unknown_reference_replaces_nothing(kit: Kit) -> None:
    await kit.save(BO, "Bo lives in Rome", "theirs")
    await kit.save(ANA, "everyone works in Rome", "wide", scope=MemoryScope.TENANT)
    for number, reference in enumerate(("theirs", "wide", "no such id", "")):
        stored = await _learn(kit, f"fact number {number}", f"n{number}", replaces=reference)
        assert stored.created
        assert stored.superseded is None
    assert await kit.found(BO, scopes=(MemoryScope.USER,)) == ["Bo lives in Rome"]
    assert await kit.found(BO, scopes=(MemoryScope.TENANT,)) == ["everyone works in Rome"]


@spec(Capability.FACTS)
async def late_news_goes_before_the_fact_that_is_newer(kit: Kit) -> None:
    march, february = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 2, 5, tzinfo=UTC)
    await _learn(kit, "Ana lives in Rome", "rome", since=march)
    late = await _learn(kit, "Ana lives in Bonn", "bonn", since=february, replaces="rome")
    assert late.created
    assert late.memory.invalid_at == march
    assert await kit.found(ANA) == ["Ana lives in Rome"]
    assert await kit.found(ANA, as_of=datetime(2026, 2, 10, tzinfo=UTC)) == ["Ana lives in Bonn"]
    again = await _learn(kit, "Ana lives in Bonn", "bonn2", since=february, replaces="rome")
    assert not again.created
    await _never_overlapping(kit, "bonn", "rome")


@spec(Capability.FACTS)
async def late_news_between_two_facts_touches_both(kit: Kit) -> None:
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 20, 10)]
    await _learn(kit, "Ana lives in Rome", "m1", since=days[0])
    await _learn(kit, "Ana lives in Oslo", "m3", since=days[1], replaces="m1")
    await _learn(kit, "Ana lives in Bonn", "m2", since=days[2], replaces="m3")
    await _never_overlapping(kit, "m1", "m2", "m3")
    for day, city in ((5, "Rome"), (15, "Bonn"), (25, "Oslo")):
        found = await kit.found(ANA, as_of=datetime(2026, 1, day, tzinfo=UTC))
        assert found == [f"Ana lives in {city}"]


@spec(Capability.FACTS)
async def deleting_a_replacement_makes_the_old_fact_current_again(kit: Kit) -> None:
    await _learn(kit, "Ana lives in Rome", "m1")
    kit.clock.move(days=1)
    await _learn(kit, "Ana lives in Bonn", "m2", replaces="m1")
    assert await kit.memories.delete(ANA, "m2")
    old = await kit.memories.get(ANA, "m1")
    assert old is not None
    assert (old.invalid_at, old.superseded_by) == (None, None)
    for text in (None, "where does Ana live"):
        assert await kit.found(ANA, text) == ["Ana lives in Rome"]
    assert not (await _learn(kit, "Ana lives in Rome", "m4")).created


@spec(Capability.FACTS)
async def a_fact_that_is_live_again_is_not_reopened_beside_itself(kit: Kit) -> None:
    await _learn(kit, "Ana lives in Rome", "m1")
    kit.clock.move(days=1)
    await _learn(kit, "Ana lives in Bonn", "m2", replaces="m1")
    kit.clock.move(days=1)
    assert (await _learn(kit, "Ana lives in Rome", "m3")).created
    await kit.memories.delete(ANA, "m2")
    assert await kit.found(ANA) == ["Ana lives in Rome"]


@spec(Capability.FACTS)
async def deleting_a_middle_fact_leaves_no_gap_and_no_overlap(kit: Kit) -> None:
    for number, city in enumerate(("Rome", "Bonn", "Oslo"), 1):
        kit.clock.move(days=1)
        replaced = f"m{number - 1}" if number > 1 else None
        await _learn(kit, f"Ana lives in {city}", f"m{number}", replaces=replaced)
    await kit.memories.delete(ANA, "m2")
    assert await kit.found(ANA) == ["Ana lives in Oslo"]
    await _never_overlapping(kit, "m1", "m3")


@spec(Capability.FACTS)
async def an_expired_or_replaced_fact_frees_its_place(kit: Kit) -> None:
    ends = kit.clock() + timedelta(days=1)
    await kit.memories.store_fact(kit.memory(ANA, "Ana is away", "m1", expires_at=ends))
    kit.clock.move(days=2)
    assert (await kit.memories.store_fact(kit.memory(ANA, "Ana is away", "m2"))).created
    kit.clock.move(days=1)
    await _learn(kit, "Ana is back", "m3", replaces="m2")
    kit.clock.move(days=1)
    assert (await _learn(kit, "Ana is away", "m4", replaces="m3")).created
    assert await kit.found(ANA) == ["Ana is away"]


@spec(Capability.FACTS)
async def history_is_asked_by_visibility(kit: Kit) -> None:
    await _learn(kit, "Ana lives in Rome", "m1")
    kit.clock.move(days=1)
    await _learn(kit, "Ana lives in Bonn", "m2", replaces="m1")
    for caller in (BO, person("other")):
        assert list(await kit.store.history(caller, "m1")) == []
    assert list(await kit.store.history(ANA, "no such id")) == []


@spec(Capability.FACTS)
async def a_fact_is_found_by_its_embedding(kit: Kit) -> None:
    fact: Memory = kit.memory(ANA, "Ana lives in Rome", "m1")
    await kit.memories.store_fact(fact, embedding=[0.0, 2.0])
    query = MemoryQuery(ANA, text="residence")
    (match,) = await kit.memories.search_memories(query, [0.0, 1.0])
    assert match.memory_id == "m1"
    assert abs(match.score - 1.0) < 1e-6
