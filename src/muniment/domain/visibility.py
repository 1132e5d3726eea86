"""May this caller see this memory? The reference rule, and the form a query can use.

A memory's *audience* is one string made from its scope and that scope's owner fields. Two
owners get the same string exactly when every such field is present on both sides and equal,
so "what the caller may see" is "rows whose audience is one of the caller's audiences": the
one predicate of every store's own query.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from muniment.domain.owner import MemoryOwner, owner_field
from muniment.domain.scope import MemoryScope, scope_owner_fields


def visible_to(memory_scope: MemoryScope, memory_owner: MemoryOwner, caller: MemoryOwner) -> bool:
    """True only where every field that the scope keys on is present on both and equal."""
    for name in scope_owner_fields(memory_scope):
        mine, theirs = owner_field(memory_owner, name), owner_field(caller, name)
        if mine is None or theirs is None or mine != theirs:
            return False
    return True


@lru_cache(maxsize=4_096)
def audience_key(scope: MemoryScope, owner: MemoryOwner) -> str | None:
    """The audience of `scope` under `owner`; None where the owner lacks a field it keys on."""
    values = [owner_field(owner, name) for name in scope_owner_fields(scope)]
    if None in values:
        return None
    return json.dumps([MemoryScope(scope).value, *values], ensure_ascii=False)


def audiences(caller: MemoryOwner, scopes: Iterable[MemoryScope] = ()) -> tuple[str, ...]:
    """The caller's audiences, narrow to wide; empty `scopes` means every scope."""
    chosen = tuple(scopes) or tuple(MemoryScope)
    keys = (audience_key(scope, caller) for scope in sorted(chosen, key=lambda s: s.width))
    return tuple(key for key in keys if key is not None)


@lru_cache(maxsize=4_096)
def message_audience(tenant_id: str, user_id: str) -> str:
    """The audience of one user's conversation messages, all sessions together."""
    return json.dumps(["messages", tenant_id, user_id], ensure_ascii=False)


def realm_audience(tenant_id: str, session_id: str | None) -> str:
    """The audience of entries that belong to a realm without a user: no caller has it."""
    return json.dumps(["realm", tenant_id, session_id], ensure_ascii=False)


def is_message_audience(key: str) -> bool:
    """Whether `key` is an audience of messages rather than of memories."""
    return key.startswith('["messages",')
