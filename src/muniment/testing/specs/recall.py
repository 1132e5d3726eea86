"""Candidates for recall: memories and messages, of the caller alone."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from datetime import timedelta

from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.testing.doubles import HashingEmbedder
from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.registry import Capability, spec

ANA, BO = person(), person(user="bo")
LATER = person(session="s2")


@spec(Capability.RECALL)
async def a_message_is_recalled_in_another_session(kit: Kit) -> None:
    await kit.say(ANA, "My sister Ida is allergic to peanuts")
    (hit,) = await kit.recalled(LATER, "what is Ida allergic to?")
    memory = hit.memory
    assert memory.memory_type is MemoryType.CONVERSATION
    assert (memory.scope, memory.trust) == (MemoryScope.USER, Trust.UNTRUSTED)
    assert memory.source_message_ids == (memory.memory_id,)
    assert (memory.source_session_id, memory.created_at) == ("s1", kit.clock())
    assert memory.metadata["role"] == "user"
    assert 0 < hit.relevance <= 1


@spec(Capability.RECALL)
async def messages_are_recalled_only_where_asked_for(kit: Kit) -> None:
    await kit.say(ANA, "peanuts are bad for Ida")
    assert await kit.recalled(LATER, "peanuts", messages="off") == ()
    assert await kit.recalled(LATER, "peanuts", messages="session", session_id="s2") == ()
    (hit,) = await kit.recalled(LATER, "peanuts", messages="session", session_id="s1")
    assert hit.memory.scope is MemoryScope.SESSION


@spec(Capability.RECALL)
async def nobody_else_recalls_a_message_or_memory(kit: Kit) -> None:
    await kit.say(ANA, "the zebra is hidden")
    await kit.save(ANA, "zebra of ana")
    for caller in (BO, person("other"), MemoryOwner("acme"), person(user="an%"), person(user="*")):
        for messages in ("user", "session"):
            found = await kit.recalled(caller, "zebra", messages=messages, session_id="s1")
            assert found == ()


@spec(Capability.RECALL)
async def empty_filters_match_nothing(kit: Kit) -> None:
    await kit.save(ANA, "a zebra")
    assert await kit.recalled(ANA, "zebra", scopes=()) == ()
    assert await kit.recalled(ANA, "zebra", memory_types=()) == ()


@spec(Capability.RECALL)
async def messages_of_this_window_are_left_out(kit: Kit) -> None:
    await kit.say(ANA, "zebra one", "zebra two")
    await kit.say(LATER, "zebra one")
    found = await kit.recalled(ANA, "zebra", exclude_message_ids=["id of zebra one"])
    left = sorted((hit.memory.source_session_id or "", hit.memory.content) for hit in found)
    assert left == [("s1", "zebra two"), ("s2", "zebra one")]


@spec(Capability.RECALL)
async def system_and_blank_messages_are_never_recalled(kit: Kit) -> None:
    await kit.say(ANA, "zebra rules", role="system")
    blank = kit.message("  ", "blank", role="assistant", tool_calls_json='[{"zebra": 1}]')
    await kit.conversations.append_messages(talk_of(ANA), [blank])
    assert await kit.recalled(ANA, "zebra") == ()


@spec(Capability.RECALL)
async def messages_after_the_instant_asked_about_are_left_out(kit: Kit) -> None:
    await kit.say(ANA, "zebra early")
    then = kit.clock()
    kit.clock.move(days=1)
    await kit.say(ANA, "zebra late")
    assert await kit.recalled_contents(ANA, "zebra", as_of=then) == ["zebra early"]
    assert await kit.recalled(ANA, "zebra", as_of=then - timedelta(days=1)) == ()


@spec(Capability.RECALL)
async def trust_and_types_filter_candidates(kit: Kit) -> None:
    await kit.say(ANA, "zebra said")
    await kit.save(ANA, "zebra fact", trust=Trust.MODEL)
    await kit.save(ANA, "zebra summary", memory_type=MemoryType.SUMMARY)
    assert await kit.recalled_contents(ANA, "zebra", min_trust=Trust.MODEL) == ["zebra fact"]
    only = {"messages": "off", "memory_types": (MemoryType.SUMMARY,)}
    assert await kit.recalled_contents(ANA, "zebra", **only) == ["zebra summary"]


@spec(Capability.RECALL)
async def what_others_store_changes_no_score(kit: Kit) -> None:
    for text in ("the zebra crossed the road", "a zebra and a lion", "the road is long"):
        await kit.save(ANA, text)
        await kit.say(ANA, f"I said: {text}")
    before = [
        (hit.memory.memory_id, hit.relevance) for hit in await kit.recalled(ANA, "zebra road")
    ]
    assert before
    for number in range(30):
        other = person("acme" if number % 2 else "other", f"user{number}")
        await kit.save(other, "zebra zebra road")
        await kit.say(other, "zebra road road")
    after = [(hit.memory.memory_id, hit.relevance) for hit in await kit.recalled(ANA, "zebra road")]
    assert after == before


@spec(Capability.RECALL)
async def candidates_are_best_first_and_at_most_the_limit(kit: Kit) -> None:
    for number in range(12):
        await kit.save(ANA, f"zebra number {number}" + " and more words" * number)
    found = await kit.recalled(ANA, "zebra number", limit=5)
    relevances = [hit.relevance for hit in found]
    assert len(found) == 5
    assert relevances == sorted(relevances, reverse=True)
    assert all(0 < relevance <= 1 for relevance in relevances)


@spec(Capability.RECALL)
async def rows_are_embedded_when_they_are_written(kit: Kit) -> None:
    await kit.reopen(HashingEmbedder())
    await kit.save(ANA, "a feline sleeps")
    await kit.say(ANA, "a canine barks")
    near = await HashingEmbedder()("canine barks")
    hits = {hit.memory.content: hit.lanes["cosine"] for hit in
            await kit.recalled(ANA, "unrelated", embedding=near)}  # fmt: skip
    assert hits["a canine barks"] > 0.7


@spec(Capability.RECALL)
async def a_message_is_embedded_with_its_speaker(kit: Kit) -> None:
    await kit.reopen(HashingEmbedder())
    message = kit.message("barks", "m1", name="Rex")
    await kit.conversations.append_messages(talk_of(ANA), [message])
    near = await HashingEmbedder()("Rex: barks")
    (hit,) = await kit.recalled(ANA, "unrelated", embedding=near)
    assert hit.lanes["cosine"] > 0.99


@spec(Capability.RECALL)
async def a_failing_embedder_fails_no_write(kit: Kit) -> None:
    embedder = HashingEmbedder()
    await kit.reopen(embedder)
    embedder.fail = True
    await kit.save(ANA, "zebra saved")
    await kit.say(ANA, "zebra said")
    assert sorted(await kit.recalled_contents(ANA, "zebra")) == ["zebra said", "zebra saved"]
    embedder.fail = False
    assert await kit.store.reindex() == 2
    near = await embedder("zebra saved")
    hits = await kit.recalled(ANA, "unrelated", embedding=near)
    assert max(hit.lanes["cosine"] for hit in hits) > 0.99


@spec(Capability.RECALL)
async def a_changed_memory_is_found_by_its_new_words_alone(kit: Kit) -> None:
    await kit.save(ANA, "likes zebra", "m1")
    assert await kit.recalled_contents(ANA, "zebra") == ["likes zebra"]
    await kit.save(ANA, "likes lions", "m1")
    assert await kit.recalled(ANA, "zebra") == ()
    assert await kit.recalled_contents(ANA, "lions") == ["likes lions"]


@spec(Capability.RECALL)
async def deleted_messages_are_never_recalled(kit: Kit) -> None:
    await kit.say(ANA, "zebra in the first session")
    await kit.say(LATER, "zebra in the second session")
    assert len(await kit.recalled(ANA, "zebra")) == 2
    await kit.conversations.clear_messages(talk_of(ANA))
    assert await kit.recalled_contents(ANA, "zebra") == ["zebra in the second session"]
    await kit.conversations.delete(talk_of(LATER))
    assert await kit.recalled(ANA, "zebra") == ()
