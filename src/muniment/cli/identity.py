"""As whom a command acts."""

from __future__ import annotations

from muniment.cli.exits import BadInput
from muniment.domain.conversation import ConversationIdentity, conversation_identity
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.errors import ScopeError


def owner_of(
    tenant: str, user: str, session: str | None = None, project: str | None = None
) -> MemoryOwner:
    """The owner that the options name. The operator is trusted; nobody else may choose these."""
    return MemoryOwner(
        tenant, project_id=project, user_id=user, principal_id=user, session_id=session
    )


def conversation_of(tenant: str, user: str, session: str) -> ConversationIdentity:
    """The conversation that the options name."""
    return conversation_identity(owner_of(tenant, user, session), subject="this command")


def needed_session(session: str | None) -> str:
    """`session`, refused where it is missing."""
    if session is None:
        raise BadInput("--session: is needed, the id of a conversation")
    return session


def realm_of(
    tenant: str, user: str | None = None, agent: str | None = None, session: str | None = None
) -> Scope | MemoryOwner:
    """What the options select; ids that no realm can spell are selected by owner."""
    try:
        return Scope(tenant, user, agent, session)
    except ScopeError:
        if agent is not None:
            raise
        return MemoryOwner(tenant, user_id=user, session_id=session)


def realm_words(
    tenant: str, user: str | None = None, agent: str | None = None, session: str | None = None
) -> str:
    """The selection in words."""
    parts = (("user", user), ("agent", agent), ("session", session))
    named = [f"{name} {value}" for name, value in parts if value is not None]
    return ", ".join([*named, f"tenant {tenant}" if named else f"the whole tenant {tenant}"])
