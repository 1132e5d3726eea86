"""Who asks: decided from verified claims alone. No field of a request names a user."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import jwt
from fastapi import Depends, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from jwt.utils import base64url_decode
from starlette.types import Scope

from muniment.domain import checks
from muniment.domain.conversation import ConversationIdentity
from muniment.domain.identifiers import DEFAULT_TENANT, DEFAULT_USER
from muniment.domain.owner import MemoryOwner
from muniment.domain.strict_json import read_object
from muniment.server.keys import Keys, KeysUnavailable, UnknownKey
from muniment.server.known_tokens import Known, KnownTokens
from muniment.server.middleware.crowding import take_place
from muniment.server.problems import Problem
from muniment.server.settings import AuthSettings

_BEARER = HTTPBearer(auto_error=False, description="A JWT (AUTH_MODE=jwt).")
_MOST_NAMES = 1000


class Role(StrEnum):
    """``reader`` < ``editor`` < ``admin``."""

    READER = "reader"
    EDITOR = "editor"
    ADMIN = "admin"

    def reaches(self, needed: Role) -> bool:
        """Whether this role may do what `needed` may."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified caller in one tenant. `projects` None is any (mode none only)."""

    tenant: str
    user: str
    principal: str
    role: Role
    projects: frozenset[str] | None

    def owner(self, session_id: str | None = None, project_id: str | None = None) -> MemoryOwner:
        """As whom memory is asked. Session and project are keyed under the verified user."""
        return MemoryOwner(
            self.tenant,
            project_id=self.project(project_id),
            user_id=self.user,
            principal_id=self.principal,
            session_id=session_id,
        )

    def conversation(self, session_id: str) -> ConversationIdentity:
        """The caller's own conversation of this id."""
        return ConversationIdentity(self.tenant, self.principal, session_id, self.user)

    def project(self, project_id: str | None) -> str | None:
        """`project_id`; a project that is not the token's answers as one that does not exist."""
        if project_id is None:
            return None
        wanted = checks.identifier("project_id", project_id)
        if self.projects is not None and wanted not in self.projects:
            raise Problem(404, "not-found", "no such project")
        return wanted


@dataclass(frozen=True, slots=True)
class Identity:
    """What a credential says, before a tenant is chosen."""

    user: str
    principal: str
    role: Role
    tenants: frozenset[str]
    projects: frozenset[str] | None

    def in_tenant(self, tenant: str) -> Caller:
        """The caller in one of its tenants; 403 for any other."""
        if tenant not in self.tenants:
            raise Problem(403, "tenant", "the credential is not for this tenant")
        return Caller(tenant, self.user, self.principal, self.role, self.projects)


SHARED = Identity(
    DEFAULT_USER, DEFAULT_USER, Role.ADMIN, frozenset({DEFAULT_TENANT}), projects=None
)


class Authenticator:
    """Turns a request's credential into an identity. One that was verified is known until it
    expires, or until its key is not among the keys any more."""

    def __init__(
        self,
        settings: AuthSettings,
        keys: Keys | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._known: KnownTokens[Identity] = KnownTokens(clock)

    async def identify(self, credential: str | None) -> Identity:
        """The shared identity in mode none, the token's in mode jwt; Problem 401 or 503."""
        if self._keys is None:
            return SHARED
        if credential is None:
            raise _unauthorized("a bearer token is needed")
        try:
            return await self._verified(credential, self._keys)
        except KeysUnavailable:
            raise Problem(503, "keys", "tokens cannot be verified now", retry_after=10) from None
        except (UnknownKey, jwt.PyJWTError, ValueError, TypeError, OverflowError):
            # PyJWT's errors quote claims; a claim of the wrong kind may raise any of these.
            raise _unauthorized() from None

    async def _verified(self, token: str, keys: Keys) -> Identity:
        known = self._known.get(token)
        if known is not None and await keys.key(known.header) is known.key:
            return known.identity
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in self._settings.algorithms:
            raise _unauthorized()
        key = await keys.key(header)
        claims = self._claims(token, key)
        identity = self._read(claims)
        until = int(claims["exp"]) + self._settings.leeway_seconds
        self._known.put(token, Known(identity, until, header, key))
        return identity

    def _claims(self, token: str, key: Any) -> Mapping[str, Any]:
        settings = self._settings
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(settings.algorithms),
            issuer=settings.issuer,
            audience=settings.audience,
            leeway=settings.leeway_seconds,
            options={
                "require": ["exp", settings.user_id_claim],
                "verify_aud": settings.audience is not None,
                "verify_iss": settings.issuer is not None,
            },
        )
        read_object(base64url_decode(token.split(".")[1]))  # ValueError for a claim named twice
        return claims

    def _read(self, claims: Mapping[str, Any]) -> Identity:
        names = self._settings
        try:
            user = checks.identifier("user", claims.get(names.user_id_claim))
            role = Role(claims.get(names.role_claim, Role.READER))
            tenants = _names(claims.get(names.tenants_claim))
            projects = _names(claims.get(names.projects_claim))
            principal = checks.identifier("sub", claims.get("sub", user))
        except ValueError:
            raise _unauthorized() from None
        if user == DEFAULT_USER:
            raise _unauthorized()  # what is stored under the shared identity is nobody's
        return Identity(user, principal, role, tenants, projects)


def _names(value: object) -> frozenset[str]:
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or len(listed) > _MOST_NAMES:
        raise ValueError("names: must be a list")
    return frozenset(checks.identifier("name", name) for name in listed)


def _unauthorized(detail: str = "the token is not valid here") -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


async def identified(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    tenant: Annotated[
        str, Query(min_length=1, max_length=256, description="One of the credential's tenants.")
    ] = DEFAULT_TENANT,
) -> Caller:
    """The caller of a request, in the tenant that it names."""
    token = None if credentials is None else credentials.credentials
    return await caller_of(request.scope, token, tenant)


async def caller_of(scope: Scope, token: str | None, tenant: str) -> Caller:
    """Who a request's token says that asks, in the tenant that it names; Problem 503 where that
    tenant asks for more at once than others leave."""
    identity = await scope["app"].state.authenticator.identify(token)
    try:
        wanted = checks.identifier("tenant", tenant)
    except ValueError:
        wanted = ""
    caller: Caller = identity.in_tenant(wanted)
    take_place(scope, caller.tenant)
    return caller


def of_role(needed: Role) -> Callable[[Caller], Coroutine[Any, Any, Caller]]:
    """A dependency: the caller, refused below `needed`."""

    async def caller(caller: Annotated[Caller, Depends(identified)]) -> Caller:
        if not caller.role.reaches(needed):
            raise Problem(403, "role", f"this needs the role {needed.value}")
        return caller

    return caller


Reader = Annotated[Caller, Depends(of_role(Role.READER))]
Editor = Annotated[Caller, Depends(of_role(Role.EDITOR))]
Admin = Annotated[Caller, Depends(of_role(Role.ADMIN))]
