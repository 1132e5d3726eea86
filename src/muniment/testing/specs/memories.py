"""Saving, reading and deleting memories by visibility."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from muniment.domain.memory import Memory, MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.query import MemoryQuery
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError, MemoryScopeError
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ANA, BO = person(), person(user="bo")


@spec(Capability.MEMORIES)
async def what_is_saved_comes_back_whole(kit: Kit) -> None:
    memory = kit.memory(
        ANA, "Ana climbs on Tuesdays", "m1", memory_type=MemoryType.PREFERENCE,
        metadata={"a": [1, {"b": None}], "ü": 0.5}, importance=0.25, trust=Trust.OWNER,
        expires_at=kit.clock() + timedelta(days=3), valid_from=kit.clock() - timedelta(days=3),
        source_session_id="s1", source_message_ids=("x", "y"), entity_ids=("e1",),
        source="chat:web", agent_id="helper", content_hash="abc",
    )  # fmt: skip
    saved = await kit.memories.save(memory)
    assert saved == memory
    assert await kit.memories.get(ANA, "m1") == memory


@spec(Capability.MEMORIES)
async def a_stored_owner_has_its_user_filled_in(kit: Kit) -> None:
    principal = MemoryOwner("acme", principal_id="ana", session_id="s1")
    saved = await kit.save(principal, "known by principal")
    assert saved.owner.user_id == "ana"
    assert await kit.memories.get(MemoryOwner("acme", user_id="ana"), saved.memory_id) == saved


@spec(Capability.MEMORIES)
async def saving_ones_own_id_again_updates_the_row(kit: Kit) -> None:
    await kit.save(ANA, "likes tea", "m1")
    await kit.save(ANA, "likes coffee", "m1")
    assert await kit.found(ANA) == ["likes coffee"]
    assert await kit.found(ANA, "tea") == []


@spec(Capability.MEMORIES)
async def an_id_in_use_by_another_owner_makes_a_separate_row(kit: Kit) -> None:
    await kit.save(ANA, "of ana", "m1")
    await kit.save(BO, "of bo", "m1")
    assert await kit.found(ANA) == ["of ana"]
    assert await kit.memories.delete(BO, "m1")
    assert await kit.found(ANA) == ["of ana"]


@spec(Capability.MEMORIES)
async def an_id_that_several_scopes_use_means_the_narrowest(kit: Kit) -> None:
    for scope in (MemoryScope.TENANT, MemoryScope.SESSION, MemoryScope.USER):
        await kit.save(ANA, f"of {scope}", "m1", scope=scope)
    for scope in (MemoryScope.SESSION, MemoryScope.USER, MemoryScope.TENANT):
        found = await kit.memories.get(ANA, "m1")
        assert found is not None
        assert found.scope is scope
        assert await kit.memories.delete(ANA, "m1")
    assert await kit.memories.get(ANA, "m1") is None


@spec(Capability.MEMORIES)
async def a_foreign_id_is_answered_like_an_unknown_one(kit: Kit) -> None:
    await kit.save(ANA, "of ana", "m1")
    for caller in (BO, person("other"), MemoryOwner("acme"), MemoryOwner("acme", user_id="Ana")):
        assert await kit.memories.get(caller, "m1") is None
        assert await kit.memories.delete(caller, "m1") is False
        assert await kit.found(caller) == []
    assert await kit.found(ANA) == ["of ana"]


@spec(Capability.MEMORIES)
async def an_id_that_no_store_can_hold_is_an_unknown_one(kit: Kit) -> None:
    await kit.save(ANA, "of ana", "m1")
    for name in ("m1\ud800", "m1\x00", "", "x" * 100_000):
        assert await kit.memories.get(ANA, name) is None
        assert await kit.memories.delete(ANA, name) is False
    assert await kit.found(ANA) == ["of ana"]


@spec(Capability.MEMORIES)
async def names_match_exactly_and_a_wild_card_is_a_character(kit: Kit) -> None:
    tenants = ["acme", "acme-corp", "acme_", "acm%", "ACME", "*", "acm?", "acme'--", 'a"', "a\\"]
    for tenant in tenants:
        await kit.save(person(tenant), f"row of {tenant}", "m1")
    for tenant in tenants:
        assert await kit.found(person(tenant)) == [f"row of {tenant}"]
        assert await kit.found(person(tenant), "row") == [f"row of {tenant}"]
    assert await kit.memories.delete(person("acm%"), "m1")
    assert await kit.found(person("acme")) == ["row of acme"]


@spec(Capability.MEMORIES)
async def real_identifiers_are_usable_and_canonical_spellings_are_one(kit: Kit) -> None:
    for name in ("alice+work@example.org", "auth0|5f7c", "id:ü-日本"):
        owner = person(name, name, name)
        await kit.save(owner, "kept", scope=MemoryScope.SESSION)
        assert await kit.found(owner, "kept") == ["kept"]
    composed, decomposed = person(user="zo\u00eb"), person(user="zoe\u0308")
    await kit.save(composed, "one person")
    assert await kit.found(decomposed) == ["one person"]


@spec(Capability.MEMORIES)
async def an_owner_that_cannot_address_the_scope_is_refused(kit: Kit) -> None:
    incomplete = MemoryOwner("acme", user_id="ana")
    for scope in (MemoryScope.PROJECT, MemoryScope.SESSION, MemoryScope.RUN):
        await refused(MemoryScopeError, kit.save(incomplete, "nowhere", scope=scope))
    assert await kit.found(incomplete) == []


@spec(Capability.MEMORIES)
async def metadata_that_names_another_user_changes_nothing(kit: Kit) -> None:
    smuggled = {
        "user_id": "bo",
        "tenant_id": "other",
        "owner": {"user_id": "bo"},
        "scope": "global",
    }
    await kit.save(ANA, "of ana", metadata=smuggled)
    assert await kit.found(BO) == []
    assert await kit.found(person("other")) == []
    assert await kit.found(ANA) == ["of ana"]


@spec(Capability.MEMORIES)
async def search_filters_by_scope_type_and_trust(kit: Kit) -> None:
    await kit.save(ANA, "tenant note", scope=MemoryScope.TENANT, trust=Trust.OWNER)
    await kit.save(ANA, "user note", memory_type=MemoryType.DECISION)
    assert await kit.found(ANA, scopes=(MemoryScope.TENANT,)) == ["tenant note"]
    assert await kit.found(ANA, memory_types=(MemoryType.DECISION,)) == ["user note"]
    for text in (None, "note"):
        assert await kit.found(ANA, text, min_trust=Trust.MODEL) == ["tenant note"]
        assert await kit.found(BO, text) == ["tenant note"]


@spec(Capability.MEMORIES)
async def search_without_text_gives_the_last_changed_first(kit: Kit) -> None:
    for day in range(3):
        await kit.save(ANA, f"day {day}", created_at=kit.clock() + timedelta(days=day - 9))
    assert await kit.found(ANA) == ["day 2", "day 1", "day 0"]
    assert await kit.found(ANA, limit=2) == ["day 2", "day 1"]


@spec(Capability.MEMORIES)
async def a_token_budget_passes_over_what_does_not_fit(kit: Kit) -> None:
    now = kit.clock()
    await kit.save(ANA, "a" * 30, created_at=now - timedelta(days=1))
    await kit.save(ANA, "b" * 300, created_at=now - timedelta(days=2))
    await kit.save(ANA, "c" * 30, created_at=now - timedelta(days=3))
    assert await kit.found(ANA, max_tokens=20) == ["a" * 30, "c" * 30]


@spec(Capability.MEMORIES)
async def an_expired_memory_never_comes_back(kit: Kit) -> None:
    await kit.save(ANA, "short lived", "m1", expires_at=kit.clock() + timedelta(hours=1))
    assert await kit.found(ANA, "lived") == ["short lived"]
    kit.clock.move(hours=1)
    for text in (None, "lived"):
        assert await kit.found(ANA, text, include_invalid=True) == []
        assert await kit.found(ANA, text, as_of=kit.clock() - timedelta(minutes=30)) == []
    assert await kit.memories.get(ANA, "m1") is None
    assert await kit.recalled(ANA, "lived") == ()
    assert await kit.memories.search_memories(MemoryQuery(ANA, text="lived")) == ()


@spec(Capability.MEMORIES)
async def validity_is_a_half_open_interval(kit: Kit) -> None:
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    await kit.save(ANA, "january", valid_from=start, invalid_at=end)
    moment = timedelta(microseconds=1)
    for text in (None, "january"):
        assert await kit.found(ANA, text) == []
        assert await kit.found(ANA, text, as_of=start) == ["january"]
        assert await kit.found(ANA, text, as_of=end - moment) == ["january"]
        assert await kit.found(ANA, text, as_of=end) == []
        assert await kit.found(ANA, text, as_of=start - moment) == []
        assert await kit.found(ANA, text, include_invalid=True) == ["january"]


@spec(Capability.MEMORIES)
async def the_edges_of_time_stay_readable(kit: Kit) -> None:
    east = timezone(timedelta(hours=14))
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    await kit.save(ANA, "from year one", created_at=first, valid_from=first)
    await kit.save(ANA, "until the end", expires_at=last, invalid_at=last)
    await kit.save(ANA, "in the east", created_at=datetime(2026, 1, 1, 3, tzinfo=east))
    found = {row.content: row for row in await kit.memories.search(MemoryQuery(ANA))}
    assert found["from year one"].valid_from == first
    assert found["until the end"].expires_at == last
    assert found["in the east"].created_at == datetime(2025, 12, 31, 13, tzinfo=UTC)
    assert set(await kit.found(ANA, "year end east")) == set(found)


@spec(Capability.MEMORIES)
async def a_clock_that_steps_back_loses_nothing(kit: Kit) -> None:
    await kit.save(ANA, "saved first")
    kit.clock.move(hours=-2)
    await kit.save(ANA, "saved second")
    assert sorted(await kit.found(ANA)) == ["saved first", "saved second"]
    assert sorted(await kit.found(ANA, "saved")) == ["saved first", "saved second"]


@spec(Capability.MEMORIES)
async def what_was_said_before_the_clock_stepped_back_is_still_recalled(kit: Kit) -> None:
    await kit.say(ANA, "a zebra said first")
    kit.clock.move(hours=-2)
    await kit.say(ANA, "a zebra said second")
    found = await kit.memories.candidates(
        ANA, "zebra", scopes=[MemoryScope.USER], memory_types=[MemoryType.FACT], messages="user"
    )
    said = sorted(each.memory.content for each in found)
    assert said == ["a zebra said first", "a zebra said second"]


@spec(Capability.MEMORIES)
async def text_and_metadata_over_the_limit_are_refused(kit: Kit) -> None:
    deep: object = "x"
    for _ in range(9):
        deep = [deep]
    await kit.save(ANA, "é" * 4096, "fits")
    await refused(InvalidEntryError, kit.save(ANA, "é" * 4096 + "a", "m1"))
    for metadata in ({"k": "v" * 4096}, {"k": deep}, {"k": [0] * 1001}):
        await refused(InvalidEntryError, kit.save(ANA, "text", "m1", metadata=metadata))
    assert await kit.memories.get(ANA, "m1") is None


@spec(Capability.MEMORIES)
async def a_text_that_shows_nothing_is_refused(kit: Kit) -> None:
    for text in ("\u200b", "\u200d \ufeff", "\u202e\u202c"):
        await refused(InvalidEntryError, kit.save(ANA, text, "m1"))
    assert await kit.memories.get(ANA, "m1") is None


@spec(Capability.MEMORIES)
async def hostile_text_is_found_again_by_its_exact_words(kit: Kit) -> None:
    texts = [
        '" OR * NEAR( a-b ) : ^ zebra1', "'; DROP TABLE memory; -- zebra2", "\u202ezebra3\u202c",
        "👩\u200d👩\u200d👧 zebra4", "ze\u0301bra5 z\u0308\u0323algo", "{terms} ?1 :keys zebra6",
    ]  # fmt: skip
    for number, text in enumerate(texts):
        await kit.save(ANA, text, f"m{number}")
    for number, text in enumerate(texts):
        stored = await kit.memories.get(ANA, f"m{number}")
        assert stored is not None
        assert stored.content == text
        assert (await kit.found(ANA, text))[:1] == [text]


@spec(Capability.MEMORIES)
async def a_query_of_any_length_or_content_is_answered(kit: Kit) -> None:
    await kit.save(ANA, "plain words")
    for text in ("x " * 100_000, "\x00", "\ud800", '"', "NEAR(", "🙂", "%", "a" * 200_000):
        assert await kit.found(ANA, text) == []


@spec(Capability.MEMORIES)
async def words_are_found_in_any_script(kit: Kit) -> None:
    pairs = {
        "用户喜欢喝咖啡": "咖啡", "コーヒーが好き": "コーヒー", "ฉันชอบกาแฟไทย": "ไทย",
        "wohnt in der Hauptstraße": "hauptstrasse", "Живёт в городе Прага": "прага",
        "sends two emails a day": "email", "Café in Zürich": "cafe",
    }  # fmt: skip
    for content in pairs:
        await kit.save(ANA, content)
    for content, asked in pairs.items():
        assert (await kit.found(ANA, asked))[:1] == [content]


@spec(Capability.MEMORIES)
async def what_is_deleted_is_gone_from_every_lane(kit: Kit) -> None:
    await kit.save(ANA, "the secret zebra", "m1")
    assert await kit.found(ANA, "zebra") == ["the secret zebra"]
    assert await kit.memories.delete(ANA, "m1") is True
    assert await kit.memories.delete(ANA, "m1") is False
    assert await kit.memories.get(ANA, "m1") is None
    assert await kit.found(ANA) == []
    assert await kit.found(ANA, "zebra", include_invalid=True) == []
    assert await kit.recalled(ANA, "zebra") == ()
    assert await kit.memories.search_memories(MemoryQuery(ANA, text="zebra")) == ()


@spec(Capability.MEMORIES)
async def a_global_memory_is_seen_by_every_tenant(kit: Kit) -> None:
    await kit.save(ANA, "for all", scope=MemoryScope.GLOBAL)
    assert await kit.found(person("other", "zed")) == ["for all"]


@spec(Capability.MEMORIES)
async def the_index_answers_ids_of_the_caller_alone(kit: Kit) -> None:
    mine: Memory = await kit.save(ANA, "tea with lemon", "mine")
    await kit.memories.index_memory(mine, [1.0, 0.0])
    theirs = await kit.save(BO, "tea with milk", "theirs")
    await kit.memories.index_memory(theirs, [1.0, 0.0])
    query = MemoryQuery(ANA, text="tea")
    (match,) = await kit.memories.search_memories(query, [0.6, 0.8])
    assert match.memory_id == "mine"
    assert abs(match.score - 0.6) < 1e-6
    assert [hit.memory_id for hit in await kit.memories.search_memories(query)] == ["mine"]
