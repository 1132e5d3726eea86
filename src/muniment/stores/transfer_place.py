"""Where an entry of a file goes: inside the realm, and as wide as its writer could make it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from muniment.domain import checks
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.domain.realm import RealmKey
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import audience_key, realm_audience
from muniment.stores.entries import place_of
from muniment.stores.transfer import PLACE, Intake


class Placed(NamedTuple):
    """Where an entry of a file goes; `audience` is its key."""

    scope: MemoryScope
    owner: MemoryOwner
    realm: RealmKey
    audience: str


_SHARED = (MemoryScope.PROJECT, MemoryScope.TENANT)


def moved(scope: object, taking: Intake) -> RealmKey:
    """The realm of a line, in the realm's tenant; ValueError where it lies outside."""
    realm = _realm(scope) if isinstance(scope, str) else None
    if realm is None:
        raise ValueError("scope: must look like tenant=T/subject=S/agent=A/session=N")
    if taking.rescope:
        realm = RealmKey(taking.realm.tenant, realm.subject, realm.agent, realm.session)
    if not taking.realm.covers(realm):
        raise ValueError("scope: lies outside the realm")
    return realm


def placed(scope: object, details: dict[str, Any], taking: Intake) -> Placed:
    """Where an entry goes; ValueError where it may not, or does not fit together."""
    realm = moved(scope, taking)
    place = tuple(details.get(name) for name in PLACE) if details else (None,) * len(PLACE)
    width, owner, audience = _place(realm, *place)
    if width in _SHARED and realm.subject is not None and not (taking.shared or _whole(taking)):
        raise ValueError("visibility: a project's or tenant's needs a tenant-wide realm")
    return Placed(width, owner, realm, audience)


def _whole(taking: Intake) -> bool:
    realm = taking.realm
    return realm == RealmKey(realm.tenant)


@lru_cache(maxsize=4_096)
def _realm(key: str) -> RealmKey | None:
    parts: dict[str, str] = {}
    names = iter(("tenant", "subject", "agent", "session"))
    for part in key.split("/"):
        name, _, value = part.partition("=")
        if not value or name not in names:  # each name once, in this order
            return None
        parts[name] = checks.identifier(name, unquote(value, errors="strict"))
    return RealmKey(**parts) if "tenant" in parts else None


@lru_cache(maxsize=4_096)
def _place(
    realm: RealmKey,
    visibility: str | None,
    project: str | None,
    principal: str | None,
    session: str | None,
    run: str | None,
) -> tuple[MemoryScope, MemoryOwner, str]:
    width, _ = place_of(realm)
    if visibility is not None:
        width = _visibility(visibility)
    owner = MemoryOwner(
        realm.tenant,
        project_id=project,
        user_id=realm.subject,
        principal_id=principal,
        session_id=realm.session if session is None else session,
        run_id=run,
    )
    audience = audience_key(width, owner)
    if audience is None and visibility is None:
        audience = realm_audience(realm.tenant, realm.session)
    narrow = width in (MemoryScope.SESSION, MemoryScope.RUN)
    held = owner_user(owner), owner.session_id if narrow else None
    if audience is None or held != (realm.subject, realm.session):
        raise ValueError("visibility: does not fit the scope")
    return width, owner, audience


def _visibility(value: str) -> MemoryScope:
    if value == MemoryScope.GLOBAL.value:
        raise ValueError("visibility: global is not imported")
    try:
        return MemoryScope(value)
    except ValueError:
        raise ValueError("visibility: must be run, session, user, project or tenant") from None
