"""Realms: administrative selections. Coverage asks what *belongs* to one."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any

from muniment.domain.memory import Memory
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.scope import MemoryScope
from muniment.errors import ScopeError

_PARTS = ("tenant", "subject", "agent", "session")
_NARROW = frozenset({MemoryScope.SESSION, MemoryScope.RUN})
_ALLOWED = "_.:@-+|~"
_KEY = re.compile(
    r"tenant=([^/=]+)(?:/subject=([^/=]+))?(?:/agent=([^/=]+))?(?:/session=([^/=]+))?"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """A tenant and optionally a subject (user), agent and session.

    Each part: 1 to 128 characters in NFC, starting with a letter or digit, then letters,
    digits and combining marks of any script and ``_ . : @ - + | ~``. ScopeError otherwise.
    """

    tenant: str
    subject: str | None = None
    agent: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tenant", _part("tenant", self.tenant))
        for name in _PARTS[1:]:
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _part(name, value))

    @property
    def key(self) -> str:
        """``tenant=acme/subject=alice/...``: unambiguous, and inverted by `parse`."""
        parts = ((name, getattr(self, name)) for name in _PARTS)
        return "/".join(f"{name}={value}" for name, value in parts if value is not None)

    @classmethod
    def parse(cls, key: str) -> Scope:
        """The realm of a `key`; ScopeError for anything else."""
        match = _KEY.fullmatch(key) if isinstance(key, str) else None
        if match is None:
            raise ScopeError("key: must look like tenant=T/subject=S/agent=A/session=N")
        return cls(*match.groups())

    def covers(self, other: Scope) -> bool:
        """Same tenant, and every part set here equal there."""
        return all(
            getattr(self, name) is None or getattr(self, name) == getattr(other, name)
            for name in _PARTS
        )

    def narrow(self, **parts: str) -> Scope:
        """This realm with further parts set; changing one is a ScopeError."""
        for name, value in parts.items():
            if name not in _PARTS:
                raise ScopeError("narrow: parts are subject, agent and session")
            held = getattr(self, name)
            if held is not None and held != _part(name, value):
                raise ScopeError(f"{name}: is already set")
        changes: dict[str, Any] = dict(parts)
        return replace(self, **changes)


def require_scope(value: object) -> Scope:
    """`value`, if it is exactly a Scope: not a subclass, not a look-alike."""
    if type(value) is not Scope:
        raise ScopeError("scope: must be a Scope")
    return value


def realm_of(memory: Memory) -> RealmKey:
    """Where a memory belongs: the one mapping for all coverage."""
    return RealmKey(
        tenant=memory.owner.tenant_id,
        subject=owner_user(memory.owner),
        agent=memory.agent_id,
        session=realm_session(memory),
    )


def realm_session(memory: Memory) -> str | None:
    """The session of :func:`realm_of`: of the narrow scopes alone."""
    return memory.owner.session_id if memory.scope in _NARROW else None


@dataclass(frozen=True, slots=True)
class RealmKey:
    """A realm's parts without its spelling rules, so that any owner can be administered."""

    tenant: str
    subject: str | None = None
    agent: str | None = None
    session: str | None = None

    def covers(self, other: RealmKey) -> bool:
        """Same tenant, and every part set here equal there."""
        return all(
            getattr(self, name) is None or getattr(self, name) == getattr(other, name)
            for name in _PARTS
        )


def realm_key(value: Scope | MemoryOwner) -> RealmKey:
    """The selection that an administrative verb was given: a Scope, or an owner."""
    if isinstance(value, MemoryOwner):
        return RealmKey(value.tenant_id, owner_user(value), None, value.session_id)
    scope = require_scope(value)
    return RealmKey(scope.tenant, scope.subject, scope.agent, scope.session)


def _part(name: str, value: object) -> str:
    text = unicodedata.normalize("NFC", value) if isinstance(value, str) else ""
    if not 1 <= len(text) <= 128 or not text[0].isalnum() or not all(map(_fits, text)):
        raise ScopeError(
            f"{name}: must be 1 to 128 letters, digits and {' '.join(_ALLOWED)}, "
            "starting with a letter or digit"
        )
    return text


def _fits(char: str) -> bool:
    return char in _ALLOWED or char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")
