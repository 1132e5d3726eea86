"""How widely a memory applies, and which owner fields that asks for."""

from __future__ import annotations

from muniment.domain.named import NamedEnum


class MemoryScope(NamedEnum):
    """Narrow to wide. A name is accepted wherever the enum is: ``MemoryScope("user")``."""

    RUN = "run"
    SESSION = "session"
    USER = "user"
    PROJECT = "project"
    TENANT = "tenant"
    GLOBAL = "global"

    @property
    def width(self) -> int:
        """0 for the narrowest (RUN) to 5 for the widest (GLOBAL)."""
        return _WIDTH[self]


_WIDTH = {scope: width for width, scope in enumerate(MemoryScope)}
_FIELDS: dict[MemoryScope, tuple[str, ...]] = {
    MemoryScope.GLOBAL: (),
    MemoryScope.TENANT: ("tenant_id",),
    MemoryScope.PROJECT: ("tenant_id", "project_id"),
    MemoryScope.USER: ("tenant_id", "user_id"),
    MemoryScope.SESSION: ("tenant_id", "user_id", "session_id"),
    MemoryScope.RUN: ("tenant_id", "user_id", "session_id", "run_id"),
}


def scope_owner_fields(scope: MemoryScope) -> tuple[str, ...]:
    """The owner fields that must be present and equal for a memory of `scope` to be seen.

    ``user_id`` stands for the owner's user, principal_id where user_id is absent.
    """
    return _FIELDS[MemoryScope(scope)]
