"""Entries by realm: add, get, search, supersede, forget, history and export."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from datetime import timedelta
from typing import Any

from muniment.domain.memory import MemoryType
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope
from muniment.domain.scope import MemoryScope
from muniment.domain.trust import Trust
from muniment.errors import InvalidEntryError, NotFoundError, ScopeError
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

ACME, ANA, BO = Scope("acme"), Scope("acme", subject="ana"), Scope("acme", subject="bo")
ANAS_SESSION = ANA.narrow(session="s1")
FOREIGN = (
    BO,
    ANA.narrow(session="s2"),
    ANA.narrow(agent="helper"),
    Scope("acme_", subject="ana"),
    Scope("ACME", subject="ana"),
    Scope("acm"),
    Scope("other"),
)
entries = spec(Capability.ENTRIES)


async def exported(kit: Kit, realm: Scope | MemoryOwner) -> list[dict[str, Any]]:
    return [entry async for entry in kit.entries.export(realm)]


@entries
async def members_are_named_by_value_or_by_name(kit: Kit) -> None:
    added = await kit.entries.add(ANA, "zebra", kind="DECISION", trust="OWNER")
    assert (added.kind, added.trust) == (MemoryType.DECISION, Trust.OWNER)
    found = await kit.entries.search(ANA, "zebra", kinds=["DECISION"], min_trust="OWNER")
    assert [hit.entry.id for hit in found] == [added.id]
    for wrong in ("Owner", "owner ", "NOBODY"):
        await refused(InvalidEntryError, kit.entries.add(ANA, "zebra", trust=wrong))


@entries
async def an_entry_comes_back_as_it_was_added(kit: Kit) -> None:
    added = await kit.entries.add(
        ANA,
        "Ana prefers tea",
        kind="preference",
        trust="owner",
        source="crm:7",
        importance=0.75,
        expires_at=kit.clock() + timedelta(days=1),
        metadata={"tags": ["a", {"b": None}], "n": 1.5},
    )
    assert added == await kit.entries.get(ANA, added.id)
    assert added.to_dict() == {
        "id": added.id,
        "scope": "tenant=acme/subject=ana",
        "kind": "preference",
        "text": "Ana prefers tea",
        "source": "crm:7",
        "trust": "owner",
        "importance": 0.75,
        "created_at": "2026-03-10T12:00:00.000000+00:00",
        "expires_at": "2026-03-11T12:00:00.000000+00:00",
        "superseded_by": None,
        "derived_from": [],
        "metadata": {"tags": ["a", {"b": None}], "n": 1.5},
    }
    assert added.scope == ANA
    assert (added.kind, added.trust) == (MemoryType.PREFERENCE, Trust.OWNER)


@entries
async def what_is_not_said_has_the_lowest_trust_and_is_a_fact(kit: Kit) -> None:
    plain = await kit.entries.add(ANA, "plain")
    assert (plain.kind, plain.trust, plain.source, plain.importance) == (
        "fact", "untrusted", "api", 0.5
    )  # fmt: skip
    assert (plain.expires_at, plain.superseded_by, plain.derived_from) == (None, None, ())
    assert plain.metadata == {}


@entries
async def where_an_entry_goes_follows_from_its_realm(kit: Kit) -> None:
    for realm, text in (
        (ANAS_SESSION, "zebra of the session"),
        (ANA.narrow(agent="helper"), "zebra of the user"),
        (ACME, "zebra of the tenant"),
        (Scope("acme", agent="helper"), "zebra of the agent"),
        (Scope("acme", session="s1"), "zebra of no user"),
    ):
        entry = await kit.entries.add(realm, text)
        assert entry.scope == realm
    ana = await kit.recalled(person(), "zebra")
    assert {(hit.memory.content, hit.memory.scope) for hit in ana} == {
        ("zebra of the session", MemoryScope.SESSION),
        ("zebra of the user", MemoryScope.USER),
        ("zebra of the tenant", MemoryScope.TENANT),
    }
    assert await kit.recalled_contents(person(session="s2"), "session zebra") != []
    everybody = await kit.recalled_contents(person(user="bo"), "zebra")
    assert everybody == ["zebra of the tenant"]
    assert len(await kit.hits(ACME, "zebra")) == 5
    assert await kit.hits(Scope("acme", session="s1"), "zebra user") == [
        "zebra of no user", "zebra of the session"
    ]  # fmt: skip


@entries
async def what_the_ports_saved_is_seen_by_the_realm_of_its_writer(kit: Kit) -> None:
    await kit.save(person(project_id="p1"), "zebra of the project", scope=MemoryScope.PROJECT)
    assert await kit.hits(ANA, "zebra") == ["zebra of the project"]
    assert await kit.hits(BO, "zebra") == []
    assert await kit.hits(ANAS_SESSION, "zebra") == []


@entries
async def a_foreign_id_is_answered_like_an_unknown_one(kit: Kit) -> None:
    held = await kit.entries.add(ANAS_SESSION, "zebra", trust="owner")
    unknown = "mem_" + "0" * 26
    for realm in FOREIGN:
        for name in (held.id, unknown):
            answers = [
                await refused(NotFoundError, kit.entries.get(realm, name)),
                await refused(NotFoundError, kit.entries.supersede(realm, name, "mine now")),
                await refused(NotFoundError, kit.entries.history(realm, name)),
            ]
            assert {str(answer) for answer in answers} == {"no such memory"}
            assert await kit.entries.forget(realm, [name]) == 0
        assert await kit.hits(realm, "zebra") == []
        assert await exported(kit, realm) == []
    assert await kit.entries.get(ACME, held.id) == held
    assert await kit.entries.get(ANA, held.id) == held


@entries
async def an_id_that_no_store_can_hold_is_an_unknown_one(kit: Kit) -> None:
    await kit.entries.add(ANA, "zebra")
    for name in ("mem_\ud800", "mem_\x00", "", "x" * 100_000):
        await refused(NotFoundError, kit.entries.get(ANA, name))
        await refused(NotFoundError, kit.entries.supersede(ANA, name, "mine now"))
        await refused(NotFoundError, kit.entries.history(ANA, name))
        assert await kit.entries.forget(ANA, [name]) == 0
        await refused(InvalidEntryError, kit.entries.add(ANA, "text", derived_from=[name]))
    assert await kit.hits(ANA, "zebra") == ["zebra"]


@entries
async def nothing_but_a_realm_is_a_realm(kit: Kit) -> None:
    for wrong in ("tenant=acme", None, {"tenant": "acme"}, RealmKey("acme"), object()):
        realm: Any = wrong
        await refused(ScopeError, kit.entries.add(realm, "text"))
        await refused(ScopeError, kit.entries.get(realm, "id"))
        await refused(ScopeError, kit.entries.search(realm, "text"))
        await refused(ScopeError, kit.entries.forget(realm, ["id"]))
        await refused(ScopeError, exported(kit, realm))


@entries
async def an_owner_whose_ids_fit_no_realm_has_entries_too(kit: Kit) -> None:
    odd = MemoryOwner("a tenant/with = signs", user_id="100% odd")
    entry = await kit.entries.add(odd, "zebra")
    assert entry.scope == RealmKey("a tenant/with = signs", "100% odd")
    assert entry.to_dict()["scope"] == "tenant=a tenant%2Fwith %3D signs/subject=100%25 odd"
    assert await kit.entries.get(odd, entry.id) == entry
    assert await exported(kit, odd) == [entry.to_dict()]


@entries
async def what_breaks_a_rule_is_refused_and_nothing_is_stored(kit: Kit) -> None:
    bad: list[dict[str, Any]] = [
        {"text": ""}, {"text": " \n"}, {"text": None}, {"text": "a\x00b"}, {"text": "\ud800"},
        {"text": "x" * 8193}, {"text": "é" * 4097},
        {"kind": "conversation"}, {"kind": "working"}, {"kind": "Fact"}, {"kind": None},
        {"trust": "root"}, {"trust": None}, {"source": ""}, {"source": "a b"}, {"source": None},
        {"source": "x" * 129}, {"importance": 1.1}, {"importance": float("nan")},
        {"importance": True}, {"expires_at": kit.clock()}, {"expires_at": "tomorrow"},
        {"expires_at": kit.clock().replace(tzinfo=None)}, {"derived_from": "x"},
        {"derived_from": [str(n) for n in range(101)]},
        {"metadata": {"a": float("inf")}}, {"metadata": {"a": object()}}, {"metadata": {1: 2}},
        {"metadata": []}, {"metadata": {"a": "x" * 4096}}, {"metadata": {"a": "\ud800"}},
        {"metadata": {"a": [[[[[[[[1]]]]]]]]}}, {"metadata": {"a": [1] * 1001}},
    ]  # fmt: skip
    for fields in bad:
        text = fields.pop("text", "Rumpelstilzchen")
        error = await refused(InvalidEntryError, kit.entries.add(ANA, text, **fields))
        assert "Rumpel" not in str(error)
        assert len(str(error)) < 200
    assert await kit.store.count(ACME) == 0


@entries
async def the_largest_entry_is_stored(kit: Kit) -> None:
    entry = await kit.entries.add(
        ANA, "é" * 4096, metadata={"a": [[[[[[1]]]]]], "b": "x" * 4000}, importance=1
    )
    assert await kit.entries.get(ANA, entry.id) == entry


@entries
async def search_keeps_to_kind_trust_and_time(kit: Kit) -> None:
    soon = kit.clock() + timedelta(hours=1)
    await kit.entries.add(ANA, "zebra fact", trust="model")
    await kit.entries.add(ANA, "zebra summary", kind="summary", trust="owner")
    await kit.entries.add(ANA, "zebra that ends", expires_at=soon)
    kit.clock.now = soon
    assert sorted(await kit.hits(ANA, "zebra")) == ["zebra fact", "zebra summary"]
    assert len(await kit.hits(ANA, "zebra", include_expired=True)) == 3
    assert await kit.hits(ANA, "zebra", kinds=["summary"]) == ["zebra summary"]
    assert await kit.hits(ANA, "zebra", kinds=[MemoryType.FACT]) == ["zebra fact"]
    assert await kit.hits(ANA, "zebra", kinds=[]) == []
    assert await kit.hits(ANA, "zebra", min_trust="owner") == ["zebra summary"]
    assert len(await kit.hits(ANA, "zebra", min_trust=Trust.MODEL)) == 2
    for fields in (
        {"kinds": ["fable"]}, {"kinds": "fact"}, {"min_trust": "high"}, {"k": 0}, {"k": True},
        {"max_tokens": -1}, {"max_tokens": 1.5},
    ):  # fmt: skip
        given: dict[str, Any] = dict(fields)
        await refused(InvalidEntryError, kit.entries.search(ANA, "zebra", **given))


@entries
async def a_query_is_plain_words_and_never_syntax(kit: Kit) -> None:
    await kit.entries.add(ANA, "zebra lives in Rome")
    for query in ('zebra" OR *', "NEAR( zebra ) : ^", "zebra -Rome", "ZEBRA", "zebra AND tea"):
        assert await kit.hits(ANA, query) == ["zebra lives in Rome"], query
    for query in ("", " ", '" * ( ) ^ :', "​", "%", "_"):
        assert await kit.hits(ANA, query) == [], query
    for wrong in ("x" * 1001, "é" * 501, None, 7):
        query_: Any = wrong
        await refused(InvalidEntryError, kit.entries.search(ANA, query_))
    assert await kit.hits(ANA, "x" * 1000) == []


@entries
async def words_past_the_thirty_second_are_ignored(kit: Kit) -> None:
    await kit.entries.add(ANA, "zebra")
    words = [f"w{number}" for number in range(40)]
    assert await kit.hits(ANA, " ".join([*words[:31], "zebra"])) == ["zebra"]
    assert await kit.hits(ANA, " ".join([*words[:32], "zebra"])) == []
    assert await kit.hits(ANA, "tea " * 32 + "zebra") == []


@entries
async def at_most_fifty_come_back_best_first(kit: Kit) -> None:
    for number in range(60):
        await kit.entries.add(ANA, f"zebra {'tea ' * (number % 3)}{number}")
    hits = await kit.entries.search(ANA, "zebra tea", k=100)
    assert len(hits) == 50
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]
    assert len(await kit.hits(ANA, "zebra")) == 5
    assert len(await kit.hits(ANA, "zebra", k=1)) == 1


@entries
async def a_token_budget_is_a_ceiling_and_passes_over_what_does_not_fit(kit: Kit) -> None:
    await kit.entries.add(ANA, "zebra " * 50)  # 300 bytes, 100 tokens
    await kit.entries.add(ANA, "zebra crossing")  # 14 bytes, 5 tokens
    await kit.entries.add(ANA, "my zebra")  # 8 bytes, 3 tokens
    assert sorted(await kit.hits(ANA, "zebra", max_tokens=8)) == ["my zebra", "zebra crossing"]
    assert sorted(await kit.hits(ANA, "zebra", max_tokens=7)) in (
        [["my zebra"], ["zebra crossing"]]
    )
    assert await kit.hits(ANA, "zebra", max_tokens=4) == ["my zebra"]
    assert await kit.hits(ANA, "zebra", max_tokens=2) == []
    assert await kit.hits(ANA, "zebra", max_tokens=0) == []
    assert len(await kit.hits(ANA, "zebra", max_tokens=108)) == 3
    assert len(await kit.hits(ANA, "zebra", max_tokens=108, k=2)) == 2


@entries
async def a_score_is_made_of_the_realms_rows_alone(kit: Kit) -> None:
    for text in ("zebra tea", "tea in Rome", "Rome"):
        await kit.entries.add(ANA, text)
    await kit.entries.add(ACME, "nothing of it")
    before = await kit.entries.search(ANA, "zebra tea Rome")
    for other in (BO, ACME, Scope("other"), ANA.narrow(session="s9").narrow(agent="x")):
        for number in range(5):
            if other != ANA.narrow(session="s9", agent="x"):
                await kit.entries.add(other, f"zebra {number}")
    assert await kit.entries.search(ANA, "zebra tea Rome") == before


@entries
async def other_scripts_and_forms_are_found(kit: Kit) -> None:
    for text, query in (
        ("用户喜欢喝咖啡", "咖啡"), ("コーヒーが好き", "コーヒー"), ("ฉันชอบกาแฟ", "กาแฟ"),
        ("Wohnt in der Langen Straße", "strasse"), ("Живёт в городе Прага", "прага"),
        ("prefers emails", "email"), ("نعم مرحبا", "مرحبا"), ("हिन्दी भाषा", "हिन्दी"),
    ):  # fmt: skip
        await kit.entries.add(ANA, text)
        assert await kit.hits(ANA, query, k=1) == [text], query


@entries
async def hostile_text_is_kept_and_found_by_its_words(kit: Kit) -> None:
    for text in (
        'quokka " OR * NEAR( a-b ) : ^', "quokka \u202e reversed",
        "quokka 👩‍👩‍👧‍👦 e\u0301\u0301\u0301",
        "quokka\r\n\tlines \x1b[31m", "'; DROP TABLE memory; -- quokka", "quokka %s {} $1",
    ):  # fmt: skip
        entry = await kit.entries.add(ANA, text)
        assert (await kit.entries.get(ANA, entry.id)).text == text
        assert text in await kit.hits(ANA, "quokka", k=50)


@entries
async def a_row_that_another_user_takes_over_has_left_the_realm(kit: Kit) -> None:
    await kit.save(person(), "zebra of the tenant", "m1", scope=MemoryScope.TENANT)
    await kit.entries.add(ANA, "zebra of ana")
    assert len(await kit.hits(ANA, "zebra")) == 2
    await kit.save(person(user="bo"), "zebra of the tenant", "m1", scope=MemoryScope.TENANT)
    assert await kit.hits(ANA, "zebra") == ["zebra of ana"]
    assert await kit.hits(BO, "zebra") == ["zebra of the tenant"]
    assert len(await kit.hits(ACME, "zebra")) == 2
