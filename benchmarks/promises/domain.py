"""Owners, scopes, memories and conversations."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, unit

# Two checks stand behind each other here: the promise is broken only without both.
_CURSOR_CHECKS = """\
        values = json.loads(body) if zlib.crc32(body).to_bytes(4, "big") == checksum else None
    except (binascii.Error, ValueError, TypeError, AttributeError, UnicodeError, RecursionError):
        values = None
    if not isinstance(values, list) or not values or values[0] != kind:
        raise ValueError("cursor: unknown or altered")
    if encode_cursor(*values) != cursor:
        raise ValueError("cursor: unknown or altered")
"""
_NO_CURSOR_CHECKS = """\
        values = json.loads(body)
    except (binascii.Error, ValueError, TypeError, AttributeError, UnicodeError, RecursionError):
        values = None
    if not isinstance(values, list) or not values or values[0] != kind:
        raise ValueError("cursor: unknown or altered")
"""
_VISIBILITY = ("tests/property/test_visibility.py",)

DOMAIN = (
    Mutation(
        "a PROJECT memory needs the caller's project",
        "domain/scope.py",
        'MemoryScope.PROJECT: ("tenant_id", "project_id"),',
        'MemoryScope.PROJECT: ("tenant_id",),',
        unit("promises_visibility", "an_owner_who_differs_in_one_field_sees_nothing"),
    ),
    Mutation(
        "a USER memory needs the caller's user",
        "domain/scope.py",
        'MemoryScope.USER: ("tenant_id", "user_id"),',
        'MemoryScope.USER: ("tenant_id",),',
        unit("promises_visibility", "an_owner_who_differs_in_one_field_sees_nothing"),
    ),
    Mutation(
        "a SESSION memory needs the caller's session",
        "domain/scope.py",
        'MemoryScope.SESSION: ("tenant_id", "user_id", "session_id"),',
        'MemoryScope.SESSION: ("tenant_id", "user_id"),',
        unit("promises_visibility", "an_owner_who_differs_in_one_field_sees_nothing"),
    ),
    Mutation(
        "a RUN memory needs the caller's run",
        "domain/scope.py",
        'MemoryScope.RUN: ("tenant_id", "user_id", "session_id", "run_id"),',
        'MemoryScope.RUN: ("tenant_id", "user_id", "session_id"),',
        unit("promises_visibility", "an_owner_who_differs_in_one_field_sees_nothing"),
    ),
    Mutation(
        "a TENANT memory needs the caller's tenant",
        "domain/scope.py",
        'MemoryScope.TENANT: ("tenant_id",),',
        "MemoryScope.TENANT: (),",
        unit("promises_visibility", "an_owner_who_differs_in_one_field_sees_nothing"),
    ),
    Mutation(
        "a field missing on both sides is no match",
        "domain/visibility.py",
        "if mine is None or theirs is None or mine != theirs:",
        "if mine != theirs:",
        _VISIBILITY,
    ),
    Mutation(
        "the user is derived from the principal where user_id is absent",
        "domain/owner.py",
        "return owner.user_id if owner.user_id is not None else owner.principal_id",
        "return owner.user_id",
        unit("domain", "the_user_is_derived_from_the_principal_for_both_sides"),
    ),
    Mutation(
        "an audience without all its fields does not exist",
        "domain/visibility.py",
        "if None in values:",
        "if False:",
        _VISIBILITY,
    ),
    Mutation(
        "the audience names the scope",
        "domain/visibility.py",
        "json.dumps([MemoryScope(scope).value, *values]",
        'json.dumps(["any", *values]',
        unit("promises_visibility", "no_two_scopes_share_an_audience"),
    ),
    Mutation(
        "messages are the user's own audience",
        "domain/visibility.py",
        'return json.dumps(["messages", tenant_id, user_id], ensure_ascii=False)',
        'return json.dumps(["messages", tenant_id], ensure_ascii=False)',
        _VISIBILITY,
    ),
    Mutation(
        "an owner is narrowed to what the scope keys on",
        "domain/owner.py",
        'return MemoryOwner(**{**given, "tenant_id": owner.tenant_id})',
        "return owner",
        unit("domain", "an_owner_is_narrowed_to_what_a_scope_keys_on"),
    ),
    Mutation(
        "the content hash folds case",
        "domain/content.py",
        '" ".join(content.split()).casefold()',
        '" ".join(content.split())',
        unit("domain", "content_identity_folds_white_space_and_case_only"),
    ),
    Mutation(
        "the content hash is the scope's own",
        "domain/content.py",
        'text = f"{name}\\n{normalize_content(content)}"',
        "text = normalize_content(content)",
        unit("domain", "content_identity_folds_white_space_and_case_only"),
    ),
    Mutation(
        "validity ends before its last instant",
        "domain/memory.py",
        "(self.invalid_at is None or moment < self.invalid_at)",
        "(self.invalid_at is None or moment <= self.invalid_at)",
        unit("domain", "validity_is_half_open_and_open_where_missing"),
    ),
    Mutation(
        "validity holds at its first instant",
        "domain/memory.py",
        "self.valid_from is None or self.valid_from <= moment",
        "self.valid_from is None or self.valid_from < moment",
        unit("domain", "validity_is_half_open_and_open_where_missing"),
    ),
    Mutation(
        "trust compares by rank",
        "domain/trust.py",
        "return self.rank > _rank_of(other)",
        "return str(self) > str(other)",
        unit("domain", "trust_compares_by_rank_and_not_by_spelling"),
    ),
    Mutation(
        "an altered cursor is an error",
        "domain/cursor.py",
        _CURSOR_CHECKS,
        _NO_CURSOR_CHECKS,
        unit("promises_cursor", "every_altered_character_of_a_cursor_is_noticed"),
    ),
    Mutation(
        "a cursor has one spelling",
        "domain/cursor.py",
        "if encode_cursor(*values) != cursor:",
        "if False:",
        unit("promises_cursor", "a_cursor_is_spelled_in_one_way_only"),
    ),
    Mutation(
        "a cursor of another kind is an error",
        "domain/cursor.py",
        "if not isinstance(values, list) or not values or values[0] != kind:",
        "if not isinstance(values, list) or not values:",
        unit("promises_cursor", "a_cursor_of_another_kind_is_an_error"),
    ),
    Mutation(
        "a partial reply completes no turn",
        "domain/conversation.py",
        "return spoken and not message.partial and not message.tool_calls_json",
        "return spoken and not message.tool_calls_json",
        unit("domain", "pairs_join_a_user_message_with_the_next_complete_reply"),
    ),
    Mutation(
        "a later user message displaces an unanswered one",
        "domain/conversation.py",
        "asked = asked if message.partial else message",
        "asked = asked or message",
        unit("domain", "pairs_join_a_user_message_with_the_next_complete_reply"),
    ),
    Mutation(
        "the principal takes no part in a conversation's identity",
        "domain/conversation.py",
        "principal_id: str | None = field(compare=False)",
        "principal_id: str | None = field()",
        unit("domain", "an_identity_ignores_the_principal_in_equality"),
    ),
    Mutation(
        "a user's PROJECT memory belongs to the user's realm",
        "domain/realm.py",
        "subject=owner_user(memory.owner)",
        "subject=None",
        unit("domain", "a_memory_belongs_to_its_writers_realm_whatever_the_scope"),
    ),
)
