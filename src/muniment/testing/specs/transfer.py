"""Export and import by realm."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError, ScopeError
from muniment.stores.transfer import ImportResult
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ACME, ANA, BO = Scope("acme"), Scope("acme", subject="ana"), Scope("acme", subject="bo")
transfer = spec(Capability.TRANSFER)


def line(text: object = "zebra", **fields: Any) -> dict[str, Any]:
    return {"scope": ANA.key, "kind": "fact", "text": text, "trust": "owner", **fields}


def file(*lines: dict[str, Any] | bytes, count: int | None = None) -> io.BytesIO:
    head = {"format": "muniment-entries", "version": 1, "count": len(lines)}
    if count is not None:
        head["count"] = count
    written = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in lines]
    return io.BytesIO(b"\n".join([json.dumps(head).encode(), *written]) + b"\n")


async def written(kit: Kit, realm: Scope | MemoryOwner) -> bytes:
    out = io.BytesIO()
    await kit.entries.export_stream(realm, out)
    return out.getvalue()


async def texts(kit: Kit, realm: Scope) -> list[str]:
    return [each["text"] async for each in kit.entries.export(realm)]


def without_ids(data: bytes) -> list[dict[str, Any]]:
    """The lines with each id, and each link to it, replaced by the number of its line."""
    head, *lines = [json.loads(each) for each in data.splitlines()]
    places = {each["id"]: number for number, each in enumerate(lines)}
    for number, each in enumerate(lines):
        each["id"] = number
        each["superseded_by"] = places.get(each["superseded_by"])
        each["derived_from"] = [places[name] for name in each["derived_from"]]
    return [head, *lines]


async def _fill(kit: Kit) -> None:
    ana = person(project_id="p1", run_id="r1")
    old = await kit.entries.add(ANA, "Ana prefers email", trust="owner", metadata={"a": [1, {}]})
    kit.clock.move(hours=1)
    new = await kit.entries.supersede(ANA, old.id, "Ana prefers phone", trust="owner")
    await kit.entries.add(ACME, "of the tenant", kind="decision", source="crm", importance=0.25)
    await kit.entries.add(
        ANA.narrow(session="s1", agent="helper"), "drawn", derived_from=[new.id, old.id],
        expires_at=kit.clock() + timedelta(minutes=1), trust="model",
    )  # fmt: skip
    await kit.entries.add(Scope("acme", agent="helper"), "of the agent")
    await kit.entries.add(Scope("acme", session="s9"), "of a session")
    await kit.save(ana, "of the project", "m1", scope=MemoryScope.PROJECT)
    await kit.save(ana, "of the run", "m1", scope=MemoryScope.RUN, source_session_id="s1")
    await kit.save(
        ana, "ana's", "m1", memory_type=MemoryType.SUMMARY, valid_from=kit.clock(),
        source_message_ids=("x", "y"), entity_ids=("e",), trust=Trust.MODEL,
        updated_at=kit.clock() + timedelta(seconds=1),
    )  # fmt: skip
    await kit.save(person(user="bo"), "bo's 用户 \u202e \n", "m1", invalid_at=kit.clock())
    kit.clock.move(hours=1)


@transfer
async def export_wipe_import_and_export_is_the_same_but_for_the_ids(kit: Kit) -> None:
    await _fill(kit)
    before = await written(kit, ACME)
    await kit.store.erase(ACME)
    result = await kit.entries.import_stream(ACME, io.BytesIO(before), max_trust="owner")
    assert result == ImportResult(10, 0, 0)
    after = await written(kit, ACME)
    assert without_ids(after) == without_ids(before)
    assert not {json.loads(each)["id"] for each in after.splitlines()[1:]} & {
        json.loads(each)["id"] for each in before.splitlines()[1:]
    }
    assert await kit.hits(ANA, "prefers") == ["Ana prefers phone"]
    mate = person(user="bo", project_id="p1")
    assert await kit.recalled_contents(mate, "project") == ["of the project"]


@transfer
async def the_header_counts_and_every_line_is_an_entry(kit: Kit) -> None:
    await _fill(kit)
    head, *lines = [json.loads(each) for each in (await written(kit, ANA)).splitlines()]
    assert head == {"format": "muniment-entries", "version": 1, "count": 6}
    assert lines == [each async for each in kit.entries.export(ANA)]
    assert (await written(kit, Scope("nobody"))).count(b"\n") == 1


class _Pipe(io.BytesIO):
    """A stream that goes on only, as a pipe does."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation


@transfer
async def an_export_goes_on_where_its_stream_is_and_into_a_pipe_too(kit: Kit) -> None:
    await kit.entries.add(ANA, "zebra")
    stream, pipe = io.BytesIO(), _Pipe()
    stream.write(b"before\n")
    await kit.entries.export_stream(ANA, stream)
    await kit.entries.export_stream(ANA, pipe)
    assert stream.getvalue() == b"before\n" + pipe.getvalue()
    assert pipe.getvalue().count(b"\n") == 2


@transfer
async def importing_again_stores_nothing_twice(kit: Kit) -> None:
    await _fill(kit)
    data = await written(kit, ACME)
    again = await kit.entries.import_stream(ACME, io.BytesIO(data), max_trust="owner")
    assert again == ImportResult(0, 10, 0)
    twice = await kit.entries.import_stream(
        ACME, io.BytesIO(data), max_trust="owner", skip_duplicates=False
    )
    assert twice == ImportResult(10, 0, 0)
    assert await kit.store.count(ACME) == 20


@transfer
async def the_same_text_of_another_realm_or_kind_is_no_duplicate(kit: Kit) -> None:
    await kit.entries.add(ANA, "zebra")
    given = file(
        line(), line(kind="decision"), line("Zebra"), line("zebra "),
        line(scope=f"{ANA.key}/agent=helper"), line(scope=f"{ANA.key}/session=s1"),
        line(scope=BO.key), line(), line("zebra"),
    )  # fmt: skip
    assert await kit.entries.import_stream(ACME, given) == ImportResult(6, 3, 0)


@transfer
async def trust_is_capped_unless_the_caller_says_otherwise(kit: Kit) -> None:
    given = (("zebra owner", "OWNER"), ("zebra model", "model"), ("zebra", "untrusted"))
    lines = [line(text, trust=trust) for text, trust in given]
    for most, expected in (
        (Trust.UNTRUSTED, ["untrusted"] * 3),
        ("model", ["model", "model", "untrusted"]),
        ("owner", ["owner", "model", "untrusted"]),
    ):
        await kit.store.erase(ACME)
        options: dict[str, Any] = {} if most is Trust.UNTRUSTED else {"max_trust": most}
        await kit.entries.import_stream(ANA, file(*lines), **options)
        assert [each["trust"] async for each in kit.entries.export(ANA)] == expected


def _not_lines() -> list[bytes]:
    """What is no JSON object, or not one that may be read."""
    deep: bytes = b'{"scope":' + b"[" * 30_000 + b"]" * 30_000 + b"}"
    return [
        b"", b"[]", b"null", b"7", b"{", deep, b"[" * 60_000, b"\xff\xfe", b'{"a":1}',
        json.dumps(line()).encode() + b" x",
        json.dumps(line()).replace('"kind"', '"text": "other", "kind"').encode(),
        json.dumps(line(metadata={"a": 1})).replace("1}", "NaN}").encode(),
        json.dumps(line(metadata={"a": 1})).replace("1}", "-Infinity}").encode(),
        json.dumps(line(metadata={"a": 1})).replace("1}", "1e999}").encode(),
        json.dumps(line(importance=0.5)).replace("0.5", "9" * 5000).encode(),
        json.dumps(line(metadata={"a": 1})).replace("{\"a\": 1}", '{"a": 1, "a": 2}').encode(),
        b"x" * 66_000,
    ]  # fmt: skip


def _bad_lines() -> list[dict[str, Any]]:
    """Entries that `add` would refuse, or that go beyond the realm."""
    return [
        line(scope=BO.key), line(scope="tenant=acme"), line(scope="tenant=acme_/subject=ana"),
        line(scope="*"), line(scope=None), line(scope="subject=ana/tenant=acme"),
        line(scope=f"{ANA.key}/subject=bo"), line(scope={"tenant": "acme"}),
        line(text=""), line(text="\x00Rumpel"), line(text="Rumpel\ud800"), line(text=7),
        line(text="R" * 8193), line(kind="conversation"), line(kind="Rumpel"), line(trust="root"),
        line(trust=None), line(source="a b"), line(importance=2), line(importance="0.5"),
        line(created_at="yesterday"), line(created_at="2026-03-10"), line(created_at=7),
        line(created_at="2026-03-10T12:00:00"), line(created_at="0001-01-01T00:00:00+14:00"),
        line(created_at="2026-03-10T11:00:00Z", expires_at="2026-03-10T11:00:00Z"),
        line(id=""), line(id=7), line(id="x" * 257), line(superseded_by=["x"]),
        line(id="x", superseded_by="x"), line(derived_from="x"), line(derived_from=[7]),
        line(derived_from=[str(n) for n in range(101)]), line(metadata=[]), line(metadata=None),
        line(metadata={"a": "Rumpel" * 800}), line(metadata={"a": [[[[[[[[1]]]]]]]]}),
        line(owner="bo"), line(details=7), line(details={"user": "bo"}),
        line(details={"visibility": "global"}), line(details={"visibility": "tenant"}),
        line(details={"visibility": "project", "project": "p1"}),
        line(details={"visibility": "session"}), line(details={"visibility": 7}),
        line(details={"visibility": "run", "session": "s1", "run": "r"}),
        line(details={"principal": 7}), line(details={"valid_from": "x"}),
        line(details={"valid_from": "2026-03-10T12:00:00Z", "invalid_at": "2026-03-10T12:00:00Z"}),
    ]  # fmt: skip


@transfer
async def one_bad_line_stops_it_and_nothing_is_imported(kit: Kit) -> None:
    good = line("fine")
    bad: list[dict[str, Any] | bytes] = [*_not_lines(), *_bad_lines()]
    for each in bad:
        error = await refused(
            InvalidEntryError, kit.entries.import_stream(ANA, file(good, each, good))
        )
        assert str(error).startswith("line 3: "), (each, error)
        assert len(str(error)) < 200
        assert "Rumpel" not in str(error)
        assert await kit.store.count(ACME) == 0, each


@transfer
async def a_file_without_its_header_or_its_end_is_refused(kit: Kit) -> None:
    head = {"format": "muniment-entries", "version": 1, "count": 0}
    for first in (
        {**head, "format": "other"}, {**head, "version": 2}, {**head, "version": True},
        {**head, "count": -1}, {**head, "count": "1"}, {**head, "count": True}, {}, line(),
    ):  # fmt: skip
        given = io.BytesIO(json.dumps(first).encode() + b"\n")
        error = await refused(InvalidEntryError, kit.entries.import_stream(ANA, given))
        assert str(error).startswith("line 1: ")
    empty = kit.entries.import_stream(ANA, io.BytesIO(b""))
    assert str(await refused(InvalidEntryError, empty)).startswith("line 1: ")
    short = kit.entries.import_stream(ANA, file(line(), count=2))
    assert str(await refused(InvalidEntryError, short)).startswith("line 3: ")
    long = kit.entries.import_stream(ANA, file(line(), line(), count=1))
    assert str(await refused(InvalidEntryError, long)).startswith("line 3: ")
    text: Any = io.StringIO("{}")
    await refused(InvalidEntryError, kit.entries.import_stream(ANA, text))
    assert await kit.store.count(ACME) == 0
    assert await kit.entries.import_stream(ANA, file()) == ImportResult(0, 0, 0)


@transfer
async def a_file_may_be_as_large_as_the_caller_says(kit: Kit) -> None:
    small: list[dict[str, Any]] = [{"max_entries": 2}, {"max_bytes": 150}]
    for options in small:
        given = file(line("one"), line("two"), line("three"))
        await refused(InvalidEntryError, kit.entries.import_stream(ANA, given, **options))
    assert await kit.store.count(ACME) == 0
    size = len(file(line("one"), line("two"), line("three")).getvalue())
    given = file(line("one"), line("two"), line("three"))
    result = await kit.entries.import_stream(ANA, given, max_entries=3, max_bytes=size)
    assert result.imported == 3
    wrong: list[dict[str, Any]] = [
        {"max_entries": -1}, {"max_bytes": True}, {"max_trust": "high"}
    ]  # fmt: skip
    for options in wrong:
        await refused(InvalidEntryError, kit.entries.import_stream(ANA, file(), **options))


@transfer
async def a_file_is_moved_into_the_tenant_narrower_parts_kept(kit: Kit) -> None:
    await _fill(kit)
    data = await written(kit, ACME)
    other = Scope("other")
    await refused(InvalidEntryError, kit.entries.import_stream(other, io.BytesIO(data)))
    result = await kit.entries.import_stream(other, io.BytesIO(data), rescope=True)
    assert result.imported == 10
    assert await kit.store.count(other.narrow(subject="ana", session="s1")) == 2
    assert await kit.hits(other.narrow(subject="ana"), "prefers") == ["Ana prefers phone"]
    narrow = kit.entries.import_stream(other.narrow(subject="bo"), io.BytesIO(data), rescope=True)
    await refused(InvalidEntryError, narrow)


@transfer
async def links_that_leave_the_file_or_the_realm_are_dropped_and_counted(kit: Kit) -> None:
    given = file(
        line("one", id="a", superseded_by="b"), line("two", id="b", superseded_by="gone"),
        line("three", id="c", scope=BO.key, superseded_by="a"),
        line("four", derived_from=["a", "gone", "c"], trust="untrusted"),
        line("five", scope=f"{ANA.key}/session=s1", derived_from=["a"]),
        line("six", scope=ACME.key, derived_from=["c", "a"]),
    )  # fmt: skip
    assert await kit.entries.import_stream(ACME, given) == ImportResult(6, 0, 4)
    rows = {each["text"]: each async for each in kit.entries.export(ACME)}
    assert rows["one"]["superseded_by"] == rows["two"]["id"]
    assert (rows["two"]["superseded_by"], rows["three"]["superseded_by"]) == (None, None)
    assert rows["four"]["derived_from"] == [rows["one"]["id"]]
    assert rows["five"]["derived_from"] == [rows["one"]["id"]]
    assert rows["six"]["derived_from"] == [rows["three"]["id"], rows["one"]["id"]]
    assert "one" not in await kit.recalled_contents(person(), "one")
    assert await kit.hits(ANA, "one two") == ["two"]


@transfer
async def links_lead_to_the_stored_entry_where_it_is_known(kit: Kit) -> None:
    known = await kit.entries.add(ANA, "known")
    given = file(
        line("known", id="a"), line("old", id="b", superseded_by="a"),
        line("drawn", derived_from=["a"]),
    )  # fmt: skip
    assert await kit.entries.import_stream(ANA, given) == ImportResult(2, 1, 0)
    rows = {each["text"]: each async for each in kit.entries.export(ANA)}
    assert rows["old"]["superseded_by"] == known.id
    assert rows["drawn"]["derived_from"] == [known.id]


@transfer
async def entries_are_not_linked_in_a_circle(kit: Kit) -> None:
    given = file(
        line("no"), line("one", id="a", superseded_by="b"), line("two", id="b", superseded_by="c"),
        line("three", id="c", superseded_by="a"),
    )  # fmt: skip
    error = await refused(InvalidEntryError, kit.entries.import_stream(ANA, given))
    assert str(error).startswith("line 3: ")
    twice = file(line("one", id="a"), line("two", id="a"))
    error = await refused(InvalidEntryError, kit.entries.import_stream(ANA, twice))
    assert str(error).startswith("line 3: ")
    own = file(line("one", id="a", derived_from=["a"]))
    error = await refused(InvalidEntryError, kit.entries.import_stream(ANA, own))
    assert str(error) == "line 2: derived_from: must be other entries"
    assert await kit.store.count(ACME) == 0


@transfer
async def trust_does_not_rise_by_an_import(kit: Kit) -> None:
    drawn = line("drawn", trust="model", derived_from=["a"])
    lines = [line("low", id="a", trust="untrusted"), drawn]
    call = kit.entries.import_stream(ANA, file(*lines), max_trust="owner")
    assert str(await refused(InvalidEntryError, call)).startswith("line 3: ")
    assert (await kit.entries.import_stream(ANA, file(*lines))).imported == 2


@transfer
async def a_source_that_is_imported_falls_with_what_is_derived_from_it(kit: Kit) -> None:
    session = f"{ANA.key}/session=s1"
    given = file(line("zebra said", id="a", scope=session), line("zebra", derived_from=["a"]))
    await kit.entries.import_stream(ANA, given)
    await kit.store.erase(ANA.narrow(session="s1"))
    assert await texts(kit, ACME) == []


@transfer
async def what_a_user_wrote_for_all_needs_the_callers_word_in_a_narrow_realm(kit: Kit) -> None:
    await kit.save(person(project_id="p1"), "of the project", scope=MemoryScope.PROJECT)
    data = await written(kit, ANA)
    await kit.store.erase(ACME)
    await refused(InvalidEntryError, kit.entries.import_stream(ANA, io.BytesIO(data)))
    result = await kit.entries.import_stream(ANA, io.BytesIO(data), shared=True)
    assert result.imported == 1
    mate = person(user="bo", project_id="p1")
    assert await kit.recalled_contents(mate, "project") == ["of the project"]


@transfer
async def details_move_no_entry_out_of_the_realm(kit: Kit) -> None:
    here = Scope("acme", subject="ana", session="s1")
    for details in ({"session": "s2"}, {"session": "s2", "run": "r1", "visibility": "run"}):
        given = file(line(scope=here.key, details=details))
        await refused(InvalidEntryError, kit.entries.import_stream(here, given))
    assert await texts(kit, ACME) == []


@transfer
async def a_realm_is_required_of_an_import_and_an_export(kit: Kit) -> None:
    for wrong in ("tenant=acme", None):
        realm: Any = wrong
        await refused(ScopeError, kit.entries.import_stream(realm, file(line())))
        await refused(ScopeError, kit.entries.export_stream(realm, io.BytesIO()))


@transfer
async def an_owner_whose_ids_fit_no_realm_is_moved_too(kit: Kit) -> None:
    odd = MemoryOwner("a tenant/with = signs", user_id="100% odd")
    await kit.save(odd, "odd row")
    data = await written(kit, odd)
    await kit.store.erase(odd)
    assert (await kit.entries.import_stream(odd, io.BytesIO(data))).imported == 1
    assert await kit.found(odd) == ["odd row"]
