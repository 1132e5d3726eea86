"""As whom a command acts."""

from __future__ import annotations

from muniment.cli.exits import BadInput
from muniment.domain.conversation import ConversationIdentity, conversation_identity
from muniment.domain.owner import MemoryOwner


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
        raise BadInput("--session: this needs a session")
    return session
