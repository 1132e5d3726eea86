"""Whose a memory is, or as whom a query is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muniment.domain import checks
from muniment.domain.scope import MemoryScope, scope_owner_fields


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """The isolation key. Build it from the authenticated request, never from supplied fields.

    Each given field: 1 to 256 characters, not blank, no control characters; kept in NFC.
    Raises ValueError that names the field.
    """

    tenant_id: str
    project_id: str | None = None
    user_id: str | None = None
    principal_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tenant_id", checks.identifier("tenant_id", self.tenant_id))
        for name in ("project_id", "user_id", "principal_id", "session_id", "run_id"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checks.identifier(name, value))


def owner_user(owner: MemoryOwner) -> str | None:
    """The owner's user: user_id, or principal_id where that is absent. Decided only here."""
    return owner.user_id if owner.user_id is not None else owner.principal_id


def owner_field(owner: MemoryOwner, name: str) -> str | None:
    """One field by name, with the derived user for ``user_id``."""
    if name == "user_id":
        return owner_user(owner)
    value: str | None = getattr(owner, name)
    return value


def with_user(owner: MemoryOwner) -> MemoryOwner:
    """`owner` with user_id filled in, as it is stored."""
    return owner if owner.user_id is not None else replace(owner, user_id=owner_user(owner))


def can_address(owner: MemoryOwner, scope: MemoryScope) -> bool:
    """Whether `owner` has every field that `scope` keys on."""
    return None not in [owner_field(owner, name) for name in scope_owner_fields(scope)]


def scope_query_owner(owner: MemoryOwner, scope: MemoryScope) -> MemoryOwner | None:
    """`owner` narrowed to what `scope` keys on, or None when it cannot be addressed.

    principal_id is dropped; tenant_id stays, for GLOBAL too.
    """
    if not can_address(owner, scope):
        return None
    fields = {name: owner_field(owner, name) for name in scope_owner_fields(scope)}
    given = {name: value for name, value in fields.items() if value is not None}
    return MemoryOwner(**{**given, "tenant_id": owner.tenant_id})
