"""Messages by arrival, sessions, titles and the directory."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

import asyncio
from datetime import timedelta

from muniment.domain.conversation import ConversationIdentity, ConversationPage
from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.errors import InvalidEntryError
from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ANA, BO = person(), person(user="bo")
TALK = talk_of(ANA)


async def _page(kit: Kit, owner: MemoryOwner = ANA, **fields: object) -> ConversationPage:
    arguments = {"limit": 2, **fields}
    return await kit.conversations.list_conversations(
        tenant_id=owner.tenant_id, user_id=owner.user_id or "", **arguments  # type: ignore[arg-type]
    )  # fmt: skip


def _names(page: ConversationPage) -> list[str]:
    return [row.session_id for row in page.conversations]


@spec(Capability.CONVERSATIONS)
async def a_message_comes_back_whole(kit: Kit) -> None:
    message = kit.message(
        "hello", "m1", role="assistant", token_count=3, tool_calls_json="[not json",
        tool_call_id="t1", citations_json="{}", run_id="r1", partial=True, name="Bob",
    )  # fmt: skip
    await kit.conversations.append_messages(TALK, [message])
    assert list(await kit.conversations.recent_messages(TALK, limit=5)) == [message]


@spec(Capability.CONVERSATIONS)
async def messages_are_ordered_by_arrival_not_by_their_times(kit: Kit) -> None:
    await kit.say(ANA, "first", at=kit.clock() + timedelta(days=1))
    await kit.say(ANA, "second", "third", at=kit.clock() - timedelta(days=1))
    assert await kit.said(ANA) == ["first", "second", "third"]
    assert await kit.said(ANA, limit=2) == ["second", "third"]


@spec(Capability.CONVERSATIONS)
async def a_repeated_message_is_ignored(kit: Kit) -> None:
    await kit.say(ANA, "one", "two")
    kit.clock.move(seconds=5)
    await kit.say(ANA, "two", "three", "three")
    itself = kit.message("four", "id of four")
    await kit.conversations.append_messages(TALK, [itself, itself])
    assert await kit.said(ANA) == ["one", "two", "three", "four"]


@spec(Capability.CONVERSATIONS)
async def other_content_under_a_used_id_is_refused_and_nothing_is_stored(kit: Kit) -> None:
    await kit.say(ANA, "one")
    batch = [kit.message("new", "n1"), kit.message("changed", "id of one")]
    await refused(InvalidEntryError, kit.conversations.append_messages(TALK, batch))
    assert await kit.said(ANA) == ["one"]
    twice = [kit.message("a", "same"), kit.message("b", "same")]
    await refused(InvalidEntryError, kit.conversations.append_messages(talk_of(BO), twice))
    assert await kit.said(BO) == []
    assert not await kit.conversations.exists(talk_of(BO))


@spec(Capability.CONVERSATIONS)
async def two_users_share_neither_session_names_nor_message_ids(kit: Kit) -> None:
    for owner in (ANA, BO, person("other")):
        message = kit.message(f"{owner.tenant_id} {owner.user_id}", "m1")
        await kit.conversations.append_messages(talk_of(owner), [message])
    for owner in (ANA, BO, person("other")):
        assert await kit.said(owner) == [f"{owner.tenant_id} {owner.user_id}"]


@spec(Capability.CONVERSATIONS)
async def the_newest_complete_exchanges_are_given(kit: Kit) -> None:
    await kit.say(ANA, "q1")
    await kit.say(ANA, "a1", role="assistant")
    await kit.say(ANA, "q2", "q3")
    call = kit.message("", "call", role="assistant", tool_calls_json="[{}]")
    await kit.conversations.append_messages(TALK, [call])
    await kit.say(ANA, "result", role="tool")
    await kit.say(ANA, "a3", role="assistant")
    await kit.say(ANA, "q4")
    for limit, expected in ((5, ["q1", "a1", "q3", "a3"]), (1, ["q3", "a3"])):
        rows = await kit.conversations.recent_complete_messages(TALK, limit=limit)
        assert [row.content for row in rows] == expected


@spec(Capability.CONVERSATIONS)
async def messages_are_paged_after_one_of_them(kit: Kit) -> None:
    await kit.say(ANA, "a", "b", "c", "d")
    await kit.say(BO, "z")
    after = kit.conversations.messages_after
    assert [m.content for m in await after(TALK, after_message_id=None, limit=3)] == list("abc")
    assert [m.content for m in await after(TALK, after_message_id="id of c", limit=3)] == ["d"]
    for foreign in ("id of z", "unknown", "", "a\0b", "\ud800", "x" * 3000):
        await refused(ValueError, after(TALK, after_message_id=foreign, limit=3))


@spec(Capability.CONVERSATIONS)
async def concurrent_appends_lose_nothing(kit: Kit) -> None:
    await asyncio.gather(*(kit.say(ANA, f"a{n}", f"b{n}") for n in range(12)))
    said = await kit.said(ANA)
    assert sorted(said) == sorted([f"a{n}" for n in range(12)] + [f"b{n}" for n in range(12)])
    assert all(said[said.index(f"a{n}") + 1] == f"b{n}" for n in range(12))


@spec(Capability.CONVERSATIONS)
async def an_append_makes_the_session_and_nothing_makes_none(kit: Kit) -> None:
    await kit.conversations.append_messages(TALK, [])
    assert not await kit.conversations.exists(TALK)
    await kit.say(ANA, "hi")
    assert await kit.conversations.exists(TALK)
    assert await kit.conversations.exists(TALK, kind="chat")
    assert not await kit.conversations.exists(TALK, kind="agent")
    for other in (talk_of(BO), talk_of(person("other")), talk_of(person(session="S1"))):
        assert not await kit.conversations.exists(other)


@spec(Capability.CONVERSATIONS)
async def creating_again_changes_nothing(kit: Kit) -> None:
    await kit.conversations.create(TALK, kind="agent", title="  Trip  ")
    await kit.conversations.create(TALK, title="Other")
    assert await kit.conversations.exists(TALK, kind="agent")
    assert await kit.conversations.get_title(TALK) == "Trip"


@spec(Capability.CONVERSATIONS)
async def a_generated_title_never_overrides_a_hand(kit: Kit) -> None:
    await kit.conversations.create(TALK)
    assert not await kit.conversations.set_generated_title(TALK, title="  ")
    assert await kit.conversations.set_generated_title(TALK, title="made")
    assert await kit.conversations.rename_conversation(TALK, title=None)
    assert not await kit.conversations.set_generated_title(TALK, title="made again")
    assert await kit.conversations.get_title(TALK) is None
    await refused(ValueError, kit.conversations.rename_conversation(TALK, title="x" * 201))


@spec(Capability.CONVERSATIONS)
async def a_session_that_is_not_there_has_nothing_to_change(kit: Kit) -> None:
    await kit.conversations.create(TALK, title="mine")
    for other in (talk_of(BO), talk_of(person("other")), talk_of(person(session="s9"))):
        assert not await kit.conversations.rename_conversation(other, title="stolen")
        assert not await kit.conversations.set_generated_title(other, title="stolen")
        assert await kit.conversations.get_title(other) is None
        assert not await kit.conversations.delete(other)
        await kit.conversations.clear_messages(other)
        assert not await kit.conversations.exists(other)
    assert await kit.conversations.get_title(TALK) == "mine"


@spec(Capability.CONVERSATIONS)
async def clearing_takes_the_summary_and_keeps_the_session(kit: Kit) -> None:
    await kit.conversations.create(TALK, title="kept")
    await kit.say(ANA, "one")
    summary = {"memory_type": MemoryType.SUMMARY, "scope": MemoryScope.SESSION}
    await kit.save(ANA, "summary of one", **summary)
    await kit.save(person(session="s2"), "summary of another", **summary)
    await kit.save(ANA, "a user fact")
    await kit.conversations.clear_messages(TALK)
    assert await kit.said(ANA) == []
    assert await kit.found(ANA) == ["a user fact"]
    assert await kit.found(person(session="s2"), scopes=(MemoryScope.SESSION,)) == [
        "summary of another"
    ]
    assert await kit.conversations.get_title(TALK) == "kept"


@spec(Capability.CONVERSATIONS)
async def deleting_a_session_takes_what_was_kept_for_it_alone(kit: Kit) -> None:
    run = person(run_id="r1")
    await kit.say(ANA, "one")
    await kit.save(ANA, "detail", scope=MemoryScope.SESSION)
    await kit.save(run, "step", scope=MemoryScope.RUN)
    await kit.save(ANA, "a user fact", source_session_id="s1")
    await kit.store.working.put(run, {"step": 1}, ttl_seconds=60)
    assert await kit.conversations.delete(TALK) is True
    assert await kit.conversations.delete(TALK) is False
    assert await kit.said(ANA) == []
    assert await kit.found(run) == ["a user fact"]
    assert await kit.store.working.get(run) is None
    assert _names(await _page(kit)) == []


@spec(Capability.CONVERSATIONS)
async def conversations_are_listed_last_activity_first(kit: Kit) -> None:
    for name in ("s1", "s2", "s3"):
        kit.clock.move(minutes=1)
        await kit.say(person(session=name), "hello", "again")
    kit.clock.move(minutes=1)
    await kit.say(person(session="s1"), "newest")
    kit.clock.move(minutes=1)
    await kit.conversations.rename_conversation(talk_of(person(session="s2")), title="named")
    page = await _page(kit, limit=10)
    assert [(row.session_id, row.title, row.message_count) for row in page.conversations] == [
        ("s1", None, 3), ("s3", None, 2), ("s2", "named", 2)
    ]  # fmt: skip
    assert page.next_cursor is None
    assert page.conversations[0].updated_at == kit.clock() - timedelta(minutes=1)


@spec(Capability.CONVERSATIONS)
async def only_ones_own_conversations_are_listed_by_kind(kit: Kit) -> None:
    await kit.conversations.create(TALK, kind="agent")
    await kit.conversations.create(talk_of(person(session="s2")))
    await kit.conversations.create(talk_of(BO))
    assert _names(await _page(kit, kind="agent")) == ["s1"]
    assert sorted(_names(await _page(kit))) == ["s1", "s2"]
    assert _names(await _page(kit, person("other"))) == []


@spec(Capability.CONVERSATIONS)
async def paging_holds_while_conversations_change(kit: Kit) -> None:
    for number in range(6):
        await kit.say(person(session=f"s{number}"), "hello")
    first = await _page(kit)
    assert _names(first) == ["s5", "s4"]
    await kit.say(person(session="s0"), "between the pages")
    await kit.say(person(session="s9"), "made between the pages")
    await kit.conversations.delete(talk_of(person(session="s4")))
    second = await _page(kit, cursor=first.next_cursor)
    third = await _page(kit, cursor=second.next_cursor)
    assert _names(second) + _names(third) == ["s3", "s2", "s1", "s0"]
    assert third.next_cursor is None
    assert _names(await _page(kit)) == ["s9", "s0"]


@spec(Capability.CONVERSATIONS)
async def an_altered_or_unknown_cursor_is_an_error(kit: Kit) -> None:
    for number in range(3):
        await kit.say(person(session=f"s{number}"), "hello")
    cursor = (await _page(kit)).next_cursor
    assert cursor is not None
    for broken in (cursor[:-1], cursor + "A", "x", "", cursor.swapcase()):
        await refused(ValueError, _page(kit, cursor=broken))


@spec(Capability.CONVERSATIONS)
async def a_foreign_cursor_shows_nothing_foreign(kit: Kit) -> None:
    for number in range(3):
        await kit.say(person(session=f"s{number}"), "hello")
    cursor = (await _page(kit)).next_cursor
    assert _names(await _page(kit, BO, cursor=cursor)) == []


@spec(Capability.CONVERSATIONS)
async def limits_out_of_range_are_refused(kit: Kit) -> None:
    for limit in (0, -1):
        await refused(ValueError, kit.conversations.recent_messages(TALK, limit=limit))
        await refused(ValueError, _page(kit, limit=limit))


@spec(Capability.CONVERSATIONS)
async def the_principal_is_provenance_and_no_key(kit: Kit) -> None:
    await kit.say(ANA, "said by one credential")
    other = ConversationIdentity("acme", "another credential", "s1", "ana")
    rows = await kit.conversations.recent_messages(other, limit=5)
    assert [row.content for row in rows] == ["said by one credential"]
