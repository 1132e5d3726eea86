"""The values of the domain keep the rules of the model."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from muniment import (
    ConversationIdentity,
    ConversationMessage,
    ConversationTurn,
    Memory,
    MemoryOwner,
    MemoryQuery,
    MemoryScope,
    MemoryType,
    Scope,
    ScopeError,
    Trust,
    complete_message_pairs,
    content_hash,
    conversation_identity,
    decode_conversation_cursor,
    encode_conversation_cursor,
    new_memory_id,
    normalize_content,
    normalize_conversation_title,
    realm_of,
    require_scope,
    scope_owner_fields,
    scope_query_owner,
    turns_from_messages,
    visible_to,
)
from muniment.errors import MemoryScopeError

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
OWNER = MemoryOwner("acme", project_id="p", user_id="ana", principal_id="key", session_id="s")


def memory(**changes: Any) -> Memory:
    values: dict[str, Any] = {
        "memory_id": "m",
        "scope": MemoryScope.USER,
        "memory_type": MemoryType.FACT,
        "owner": OWNER,
        "content": "Ana lives in Oslo",
        "created_at": NOW,
    }
    return Memory(**{**values, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_id", " "),
        ("content", ""),
        ("content", " \n"),
        ("content", "a\x00b"),
        ("content", "a\ud800"),
        ("content", 7),
        ("importance", 1.01),
        ("importance", float("nan")),
        ("importance", True),
        ("created_at", datetime(2026, 1, 1)),
        ("created_at", datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))),
        ("updated_at", NOW - timedelta(seconds=1)),
        ("expires_at", NOW),
        ("metadata", {"a": object()}),
        ("metadata", {1: "a"}),
        ("metadata", {"a": float("inf")}),
        ("metadata", []),
        ("derived_from", tuple(str(i) for i in range(101))),
        ("source_message_ids", "abc"),
        ("source", "has blank"),
        ("source", ""),
        ("source", "x" * 129),
        ("trust", "boss"),
        ("scope", "galaxy"),
        ("memory_type", "rumour"),
        ("owner", "acme"),
    ],
)
def test_a_bad_field_is_refused_by_its_name_and_never_quoted(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field}: ") as caught:
        memory(**{field: value})
    assert "Oslo" not in str(caught.value)


def test_an_interval_must_end_after_it_begins() -> None:
    with pytest.raises(ValueError, match="invalid_at"):
        memory(valid_from=NOW, invalid_at=NOW)


def test_validity_is_half_open_and_open_where_missing() -> None:
    held = memory(valid_from=NOW, invalid_at=NOW + timedelta(days=1), expires_at=NOW + timedelta(1))
    assert held.is_valid_at(NOW)
    assert not held.is_valid_at(NOW + timedelta(days=1))
    assert not held.is_valid_at(NOW - timedelta(microseconds=1))
    assert memory().is_valid_at(datetime(1, 1, 1, tzinfo=UTC))
    with pytest.raises(ValueError, match="time zone"):
        held.is_valid_at(datetime(2026, 3, 10))


def test_times_in_other_zones_are_the_same_instant_in_utc() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert memory(created_at=east).created_at == NOW
    assert memory(created_at=east).created_at.utcoffset() == timedelta(0)


def test_updated_at_defaults_to_created_at() -> None:
    assert memory().updated_at == NOW


def test_metadata_is_deeply_immutable_and_detached_from_what_was_given() -> None:
    given: dict[str, Any] = {"tags": ["a"], "deep": {"b": [1]}}
    held = memory(metadata=given)
    given["tags"].append("x")
    given["deep"]["b"].append(2)
    assert held.metadata["tags"] == ("a",)
    assert held.metadata["deep"]["b"] == (1,)
    with pytest.raises(TypeError):
        held.metadata["tags"] = ()  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        held.content = "other"  # type: ignore[misc]


def test_names_are_accepted_wherever_an_enum_is() -> None:
    held = memory(scope="session", memory_type="decision", trust="owner")
    assert (held.scope, held.memory_type) == (MemoryScope.SESSION, MemoryType.DECISION)
    assert held.trust is Trust.OWNER


def test_trust_compares_by_rank_and_not_by_spelling() -> None:
    assert Trust.UNTRUSTED < Trust.MODEL < Trust.OWNER
    assert Trust.OWNER >= "model"
    assert max(Trust) is Trust.OWNER


@pytest.mark.parametrize("field", ["tenant_id", "user_id", "session_id", "run_id", "project_id"])
@pytest.mark.parametrize("value", ["", "  ", "a\x00", "a\n", "\ud800", "x" * 257, 5])
def test_an_owner_refuses_bad_identifiers(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        MemoryOwner(**{"tenant_id": "t", field: value})


@pytest.mark.parametrize(
    "name", ["alice+work@example.org", "auth0|5f7c", "id:ü-日本", "acm%", "acme_", "*", "🙂"]
)
def test_real_identifiers_are_usable(name: str) -> None:
    assert MemoryOwner(name, user_id=name, session_id=name).user_id == name


def test_canonically_equal_spellings_are_one_owner() -> None:
    assert MemoryOwner("Zo\u00eb") == MemoryOwner("Zoe\u0308")


def test_each_scope_keys_on_its_fields() -> None:
    assert scope_owner_fields(MemoryScope.GLOBAL) == ()
    assert scope_owner_fields(MemoryScope.PROJECT) == ("tenant_id", "project_id")
    assert scope_owner_fields(MemoryScope.RUN) == ("tenant_id", "user_id", "session_id", "run_id")


def test_the_user_is_derived_from_the_principal_for_both_sides() -> None:
    by_user = MemoryOwner("t", user_id="ana")
    by_principal = MemoryOwner("t", principal_id="ana")
    assert visible_to(MemoryScope.USER, by_user, by_principal)
    assert visible_to(MemoryScope.USER, by_principal, by_user)
    assert not visible_to(MemoryScope.USER, by_user, MemoryOwner("t"))
    assert not visible_to(
        MemoryScope.USER, by_user, MemoryOwner("t", user_id="bo", principal_id="ana")
    )


def test_an_owner_is_narrowed_to_what_a_scope_keys_on() -> None:
    assert scope_query_owner(OWNER, MemoryScope.USER) == MemoryOwner("acme", user_id="ana")
    assert scope_query_owner(OWNER, MemoryScope.GLOBAL) == MemoryOwner("acme")
    assert scope_query_owner(OWNER, MemoryScope.RUN) is None


def test_content_identity_folds_white_space_and_case_only() -> None:
    assert normalize_content("  Ana\t LIVES \n in Oslo ") == "ana lives in oslo"
    same = content_hash("Ana lives  in Oslo", MemoryScope.USER)
    assert same == content_hash("ana lives in oslo ", MemoryScope.USER)
    assert same != content_hash("ana lives in oslo.", MemoryScope.USER)
    assert same != content_hash("ana lives in oslo", MemoryScope.SESSION)
    assert len(same) == 64


@pytest.mark.parametrize(
    "changes",
    [
        {"scopes": ("user", "user")},
        {"memory_types": ("fact", "fact")},
        {"text": " "},
        {"limit": 0},
        {"limit": 1001},
        {"as_of": datetime(2026, 1, 1)},
        {"max_tokens": 0},
        {"owner": None},
    ],
)
def test_a_query_refuses_what_is_incoherent(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^\w+: "):
        MemoryQuery(**{"owner": OWNER, **changes})


@pytest.mark.parametrize(
    "part", ["", " a", "a b", "a/b", "a=b", "a%", "-a", "x" * 129, "a\x00", "a\u202e", None, 3]
)
def test_a_realm_refuses_ambiguous_parts(part: Any) -> None:
    with pytest.raises(ScopeError):
        Scope(part)


def test_a_realm_key_is_inverted_exactly() -> None:
    realm = Scope("acme", subject="alice+work@example.org", agent="a|b", session="id:ü-日本")
    assert Scope.parse(realm.key) == realm
    assert Scope("acme").key == "tenant=acme"
    for wrong in ("acme", "tenant=", "subject=a", "tenant=a/session=s/subject=b", "tenant=a/", ""):
        with pytest.raises(ScopeError):
            Scope.parse(wrong)


def test_coverage_runs_from_the_realm_inward() -> None:
    tenant, alice = Scope("acme"), Scope("acme", subject="alice")
    assert tenant.covers(alice)
    assert not alice.covers(tenant)
    assert not Scope("acm").covers(alice)
    assert not alice.covers(Scope("acme", subject="bob"))


def test_narrowing_sets_parts_and_never_changes_one() -> None:
    alice = Scope("acme").narrow(subject="alice")
    assert alice == Scope("acme", subject="alice")
    assert alice.narrow(subject="alice", session="s").session == "s"
    for bad in ({"subject": "bob"}, {"tenant": "other"}, {"colour": "red"}):
        with pytest.raises(ScopeError):
            alice.narrow(**bad)


def test_only_exactly_a_scope_is_a_scope() -> None:
    class Wider(Scope):
        pass

    assert require_scope(Scope("a")) == Scope("a")
    for look_alike in (Wider("a"), "tenant=a", None, object()):
        with pytest.raises(ScopeError):
            require_scope(look_alike)


def test_a_memory_belongs_to_its_writers_realm_whatever_the_scope() -> None:
    project = realm_of(memory(scope="project", agent_id="bot"))
    assert (project.tenant, project.subject, project.agent, project.session) == (
        "acme",
        "ana",
        "bot",
        None,
    )
    assert realm_of(memory(scope="session")).session == "s"


def said(role: str, content: str, number: int, **changes: Any) -> ConversationMessage:
    return ConversationMessage(f"m{number}", role, content, NOW, **changes)  # type: ignore[arg-type]


def test_pairs_join_a_user_message_with_the_next_complete_reply() -> None:
    messages = [
        said("user", "displaced", 1),
        said("user", "asked", 2),
        said("assistant", "", 3, tool_calls_json="[]"),
        said("tool", "result", 4),
        said("assistant", "half", 5, partial=True),
        said("assistant", "answer", 6),
        said("assistant", "unasked", 7),
        said("user", " ", 8),
        said("user", "partly", 9, partial=True),
        said("assistant", "to nobody", 10),
        said("user", "open", 11),
    ]
    assert turns_from_messages(messages) == (ConversationTurn("asked", "answer"),)
    assert [user.message_id for user, _ in complete_message_pairs(messages)] == ["m2"]


def test_the_newest_pairs_come_oldest_first() -> None:
    messages = [
        said(role, f"{role}{turn}", 2 * turn + (role == "assistant"))
        for turn in range(5)
        for role in ("user", "assistant")
    ]
    pairs = complete_message_pairs(messages, limit=3)
    assert [user.content for user, _ in pairs] == ["user2", "user3", "user4"]


def test_an_identity_ignores_the_principal_in_equality() -> None:
    assert ConversationIdentity("t", "a", "s", "u") == ConversationIdentity("t", "b", "s", "u")
    assert ConversationIdentity("t", "a", "s", "u") != ConversationIdentity("t", "a", "s", "v")
    with pytest.raises(ValueError, match="session_id"):
        ConversationIdentity("t", "a", " ", "u")


def test_a_conversation_needs_principal_and_session() -> None:
    assert conversation_identity(OWNER, subject="test").user_id == "ana"
    with pytest.raises(MemoryScopeError):
        conversation_identity(MemoryOwner("t", user_id="u", session_id="s"), subject="test")


def test_a_message_over_one_mebibyte_is_refused() -> None:
    said("user", "x" * (1 << 20), 1)
    with pytest.raises(ValueError, match="content"):
        said("user", "é" * (1 << 19) + "x", 1)


def test_titles_are_trimmed_and_bounded() -> None:
    assert normalize_conversation_title("  Trip ") == "Trip"
    assert normalize_conversation_title(" ") is None
    assert normalize_conversation_title(None) is None
    with pytest.raises(ValueError, match="title"):
        normalize_conversation_title("x" * 201)


def test_an_altered_cursor_is_an_error() -> None:
    cursor = encode_conversation_cursor("session-ü")
    assert decode_conversation_cursor(cursor) == "session-ü"
    for wrong in ("", "x", cursor[:-2], cursor + "A", cursor.swapcase(), "ü", "[" * 60_000):
        with pytest.raises(ValueError, match="cursor"):
            decode_conversation_cursor(wrong)


def test_new_ids_are_unique_and_sortable() -> None:
    made = [new_memory_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert made[0][:10] <= made[-1][:10]
