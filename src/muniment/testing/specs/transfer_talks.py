"""Export and import of conversations."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

import io
import json
from typing import Any

from muniment.domain.realm import Scope
from muniment.errors import InvalidEntryError
from muniment.stores.transfer import ImportResult
from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec
from muniment.testing.specs.transfer import ACME, ANA, BO, file, line, written

talks = spec(Capability.TRANSFER_TALKS)


async def _talk(kit: Kit) -> None:
    for owner in (person(), person(session="s2"), person(user="bo"), person("other")):
        await kit.say(owner, "zebra one", "zebra two")
        await kit.say(owner, "zebra reply", role="assistant")
    await kit.conversations.rename_conversation(talk_of(person()), title="Of zebras")
    more = kit.message(
        "", "tool", role="assistant", tool_calls_json="[1]", token_count=0, name="helper"
    )
    await kit.conversations.append_messages(talk_of(person()), [more])
    await kit.entries.add(ANA, "zebra entry")


async def with_talks(kit: Kit, realm: Scope) -> bytes:
    out = io.BytesIO()
    await kit.entries.export_stream(realm, out, include_conversations=True)
    return out.getvalue()


@talks
async def conversations_are_exported_where_they_are_asked_for(kit: Kit) -> None:
    await _talk(kit)
    assert (await written(kit, ACME)).count(b"\n") == 2
    head, *lines = [json.loads(each) for each in (await with_talks(kit, ACME)).splitlines()]
    assert head["count"] == 1
    assert head["conversation_lines"] == len(lines) - 1 == 3 + 10
    ana = ANA.narrow(session="s1")
    assert (await with_talks(kit, ana)).count(b"\n") == 1 + 1 + 4
    assert (await with_talks(kit, ANA.narrow(agent="helper"))).count(b"\n") == 1


@talks
async def conversations_come_back_as_they_were(kit: Kit) -> None:
    await _talk(kit)
    before, said = (
        await with_talks(kit, ACME),
        await kit.conversations.recent_messages(talk_of(person()), limit=9),
    )
    await kit.store.erase(ACME)
    result = await kit.entries.import_stream(
        ACME, io.BytesIO(before), max_trust="owner", include_conversations=True
    )
    assert result == ImportResult(1, 0, 0, 3, 10)
    again = await with_talks(kit, ACME)
    assert again.splitlines()[2:] == before.splitlines()[2:]
    assert await kit.conversations.recent_messages(talk_of(person()), limit=9) == said
    assert await kit.conversations.get_title(talk_of(person())) == "Of zebras"
    assert len(await kit.recalled(person(), "zebra")) == 7
    twice = await kit.entries.import_stream(ACME, io.BytesIO(before), include_conversations=True)
    assert twice == ImportResult(0, 1, 0, 0, 0)


@talks
async def messages_are_imported_by_the_callers_word_alone(kit: Kit) -> None:
    await _talk(kit)
    data = await with_talks(kit, ACME)
    await kit.store.erase(ACME)
    await refused(InvalidEntryError, kit.entries.import_stream(ACME, io.BytesIO(data)))
    narrow = kit.entries.import_stream(ANA, io.BytesIO(data), include_conversations=True)
    await refused(InvalidEntryError, narrow)
    assert await kit.store.count(ACME) == 0
    assert await kit.said(person()) == []


@talks
async def a_bad_message_stops_the_import_and_nothing_is_imported(kit: Kit) -> None:
    session = {"session": {"scope": f"{ANA.key}/session=s1", "kind": "chat", "title": None}}
    good = {"id": "a", "role": "user", "content": "Rumpel", "created_at": "2026-03-10T12:00:00Z"}
    await kit.say(person(session="s7"), "taken")
    seven = {"session": {"scope": f"{ANA.key}/session=s7"}}
    taken = {**good, "id": "id of taken"}
    for bad in (
        [{"message": good}], [session, {"message": {**good, "role": "root"}}],
        [session, {"message": {**good, "created_at": None}}], [session, {"message": 7}],
        [session, {"message": {"id": "a"}}], [session, {"message": {**good, "owner": "bo"}}],
        [session, {"message": {**good, "content": "\ud800"}}],
        [session, {"message": good}, {"message": {**good, "content": "other"}}],
        [{"session": {"scope": ANA.key}}], [{"session": {"scope": ACME.key}}], [{"session": 7}],
        [{"session": {"scope": f"{BO.key}/session=s1"}}], [{**session, "message": good}],
        [{"session": {**session["session"], "kind": ""}}], [seven, {"message": taken}],
        [{"session": {**session["session"], "title": 7}}],
    ):  # fmt: skip
        given: Any = [line("fine"), *bad]
        data = (
            file(*given)
            .getvalue()
            .replace(
                b'"count": %d' % len(given),
                b'"count": 1, "conversation_lines": %d' % len(bad),
            )
        )
        error = await refused(
            InvalidEntryError,
            kit.entries.import_stream(ANA, io.BytesIO(data), include_conversations=True),
        )
        assert str(error).startswith(f"line {2 + len(bad)}: "), (bad, error)
        assert "Rumpel" not in str(error)
        assert await kit.store.count(ACME) == 0
        assert await kit.said(person()) == []
