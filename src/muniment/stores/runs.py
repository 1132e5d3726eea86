"""What a run's scratch state is kept under."""

from __future__ import annotations

from muniment.domain.owner import MemoryOwner, owner_user
from muniment.errors import MemoryScopeError

MAX_TTL_SECONDS = 365 * 24 * 3600


def run_key(owner: MemoryOwner) -> tuple[str, str | None, str, str, str]:
    """Tenant, project or None, user, session, run; MemoryScopeError where one is missing."""
    user = owner_user(owner)
    if user is None or owner.session_id is None or owner.run_id is None:
        raise MemoryScopeError("working memory needs an owner with a user, session_id and run_id")
    return owner.tenant_id, owner.project_id, user, owner.session_id, owner.run_id
