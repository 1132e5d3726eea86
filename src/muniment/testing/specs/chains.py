"""Entries by realm that follow each other or go: supersede, history, forget, derivation."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

import io
import json
from datetime import timedelta

from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.errors import InvalidEntryError, NotFoundError
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ACME, ANA, BO = Scope("acme"), Scope("acme", subject="ana"), Scope("acme", subject="bo")
chains = spec(Capability.CHAINS)


@chains
async def a_superseded_entry_is_kept_linked_and_no_longer_found(kit: Kit) -> None:
    old = await kit.entries.add(
        ANA, "zebra prefers email", kind="preference", importance=0.9, metadata={"a": [1]},
        expires_at=kit.clock() + timedelta(days=2),
    )  # fmt: skip
    kit.clock.move(hours=1)
    new = await kit.entries.supersede(ANA, old.id, "zebra prefers phone", trust="owner")
    assert (await kit.entries.get(ANA, old.id)).superseded_by == new.id
    assert (new.kind, new.importance, new.expires_at, new.metadata, new.scope) == (
        old.kind, old.importance, old.expires_at, old.metadata, old.scope
    )  # fmt: skip
    assert (new.trust, new.source, new.created_at) == ("owner", "api", kit.clock())
    assert await kit.hits(ANA, "zebra") == [new.text]
    assert sorted(await kit.hits(ANA, "zebra", include_superseded=True)) == [old.text, new.text]
    assert await kit.recalled_contents(person(), "zebra") == [new.text]
    before = kit.clock() - timedelta(minutes=30)
    assert await kit.recalled_contents(person(), "zebra", as_of=before) == [old.text]
    for name in (old.id, new.id):
        assert [e.id for e in await kit.entries.history(ANA, name)] == [old.id, new.id]


@chains
async def an_expired_entry_is_replaced_by_what_has_a_time_of_its_own(kit: Kit) -> None:
    old = await kit.entries.add(ANA, "old", expires_at=kit.clock() + timedelta(minutes=1))
    kit.clock.move(hours=1)
    error = await refused(InvalidEntryError, kit.entries.supersede(ANA, old.id, "new"))
    assert str(error).startswith("id: the entry is expired")
    later = kit.clock() + timedelta(days=1)
    new = await kit.entries.supersede(ANA, old.id, "new", expires_at=later)
    assert new.expires_at == later


@chains
async def a_history_is_told_to_its_ends_however_long(kit: Kit) -> None:
    lines = [{"format": "muniment-entries", "version": 1, "count": 1_100}]
    lines += [
        {
            "scope": ANA.key, "kind": "fact", "text": f"{number}", "trust": "owner",
            "id": f"e{number}", "superseded_by": f"e{number + 1}" if number < 1_099 else None,
        }
        for number in range(1_100)
    ]  # fmt: skip
    written = "".join(json.dumps(each) + "\n" for each in lines).encode()
    await kit.entries.import_stream(ANA, io.BytesIO(written))
    (first,) = [each["id"] async for each in kit.entries.export(ANA) if each["text"] == "0"]
    told = [entry.text for entry in await kit.entries.history(ANA, first)]
    assert told == [f"{number}" for number in range(1_100)]


@chains
async def what_is_given_replaces_what_the_old_entry_had(kit: Kit) -> None:
    old = await kit.entries.add(ANA, "old", metadata={"a": 1}, importance=0.9)
    soon = kit.clock() + timedelta(days=1)
    new = await kit.entries.supersede(
        ANA, old.id, "new", kind="decision", source="crm", trust="model", importance=0.0,
        expires_at=soon, metadata={},
    )  # fmt: skip
    assert (new.kind, new.source, new.trust, new.importance, new.expires_at, new.metadata) == (
        "decision", "crm", "model", 0.0, soon, {}
    )  # fmt: skip


@chains
async def an_entry_is_superseded_once(kit: Kit) -> None:
    old = await kit.entries.add(ANA, "first")
    new = await kit.entries.supersede(ANA, old.id, "second")
    await refused(InvalidEntryError, kit.entries.supersede(ANA, old.id, "third"))
    assert [e.text for e in await kit.entries.history(ANA, old.id)] == ["first", "second"]
    last = await kit.entries.supersede(ANA, new.id, "third")
    assert [e.id for e in await kit.entries.history(ACME, new.id)] == [old.id, new.id, last.id]


@chains
async def a_wider_realm_supersedes_in_the_realm_of_the_old_entry(kit: Kit) -> None:
    session = ANA.narrow(session="s1", agent="helper")
    old = await kit.entries.add(session, "zebra old")
    new = await kit.entries.supersede(ACME, old.id, "zebra new")
    assert new.scope == session
    assert await kit.recalled_contents(person(), "zebra") == ["zebra new"]
    assert await kit.recalled_contents(person(session="s2"), "zebra") == []


@chains
async def what_the_ports_saved_is_superseded_where_it_is(kit: Kit) -> None:
    team = person(project_id="p1")
    await kit.save(team, "zebra old", "m1", scope=MemoryScope.PROJECT)
    await kit.entries.supersede(ANA, "m1", "zebra new")
    mate = person(user="bo", project_id="p1")
    assert await kit.recalled_contents(mate, "zebra") == ["zebra new"]


@chains
async def a_refused_supersession_changes_nothing(kit: Kit) -> None:
    old = await kit.entries.add(ANA, "zebra")
    for fields in ({"kind": "working"}, {"trust": "high"}, {"importance": 2}, {"source": ""}):
        call = kit.entries.supersede(ANA, old.id, "new", **fields)
        await refused(InvalidEntryError, call)
    for text in ("", "a\x00", "x" * 8193):
        await refused(InvalidEntryError, kit.entries.supersede(ANA, old.id, text))
    assert await kit.entries.get(ANA, old.id) == old
    assert await kit.store.count(ACME) == 1
    assert await kit.hits(ANA, "zebra") == ["zebra"]


@chains
async def forgetting_the_replacement_makes_the_old_entry_current_again(kit: Kit) -> None:
    old = await kit.entries.add(ANA, "zebra old")
    new = await kit.entries.supersede(ANA, old.id, "zebra new")
    assert await kit.entries.forget(ANA, [new.id]) == 1
    assert await kit.entries.get(ANA, old.id) == old
    assert await kit.hits(ANA, "zebra") == ["zebra old"]
    again = await kit.entries.supersede(ANA, old.id, "zebra newest")
    assert [e.id for e in await kit.entries.history(ANA, old.id)] == [old.id, again.id]


@chains
async def what_is_forgotten_never_comes_back(kit: Kit) -> None:
    kept = await kit.entries.add(ANA, "zebra kept")
    gone = [(await kit.entries.add(ANA, f"zebra {number}")).id for number in range(3)]
    await kit.hits(ANA, "zebra")
    assert await kit.entries.forget(ANA, [*gone, gone[0], "mem_unknown", kept.id + "x"]) == 3
    assert await kit.entries.forget(ANA, gone) == 0
    assert await kit.entries.forget(ANA, []) == 0
    await kit.reopen()
    if await kit.store.count(ACME):  # a store that lasts
        assert await kit.hits(ANA, "zebra", include_superseded=True) == ["zebra kept"]
        assert await kit.recalled_contents(person(), "zebra") == ["zebra kept"]
        assert [each["id"] async for each in kit.entries.export(ACME)] == [kept.id]
    for name in gone:
        await refused(NotFoundError, kit.entries.get(ANA, name))


@chains
async def at_most_a_thousand_are_forgotten_at_once(kit: Kit) -> None:
    one = await kit.entries.add(ANA, "zebra")
    ids = [one.id, *(f"mem_{number}" for number in range(1000))]
    await refused(InvalidEntryError, kit.entries.forget(ANA, ids))
    await refused(InvalidEntryError, kit.entries.forget(ANA, one.id))
    assert await kit.store.count(ANA) == 1
    assert await kit.entries.forget(ANA, ids[:1000]) == 1


@chains
async def a_source_must_be_there_for_its_writer(kit: Kit) -> None:
    source = await kit.entries.add(ANA, "said by ana", trust="owner")
    session = await kit.entries.add(ANA.narrow(session="s1"), "drawn", derived_from=[source.id])
    assert session.derived_from == (source.id,)
    assert (await kit.entries.get(ANA, session.id)).derived_from == (source.id,)
    everybodys = await kit.entries.add(ACME, "of all")
    assert (await kit.entries.add(ANA, "too", derived_from=[everybodys.id])).derived_from
    for realm, name in ((BO, source.id), (ANA, "mem_unknown"), (Scope("other"), source.id)):
        error = await refused(
            InvalidEntryError, kit.entries.add(realm, "mine", derived_from=[name])
        )
        assert str(error) == "derived_from: names an entry that is not there"
    assert await kit.store.count(BO) == 0


@chains
async def trust_does_not_rise_by_derivation(kit: Kit) -> None:
    low = await kit.entries.add(ANA, "pasted")
    high = await kit.entries.add(ANA, "said", trust="owner")
    await refused(
        InvalidEntryError,
        kit.entries.add(ANA, "drawn", trust="model", derived_from=[high.id, low.id]),
    )
    await kit.entries.add(ANA, "vouched for", trust="owner", derived_from=[low.id])
    await kit.entries.add(ANA, "drawn", trust="model", derived_from=[high.id])


@chains
async def what_is_derived_falls_with_its_source(kit: Kit) -> None:
    source = await kit.entries.add(ANA.narrow(session="s1"), "zebra said")
    await kit.entries.add(ANA, "zebra drawn", derived_from=[source.id])
    result = await kit.store.erase(ANA.narrow(session="s1"))
    assert (result.entries, result.derived) == (1, 1)
    assert await kit.hits(ACME, "zebra") == []
