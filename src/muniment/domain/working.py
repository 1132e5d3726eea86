"""The key and the limits of a run's scratch state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muniment.domain import checks
from muniment.domain.frozen import freeze_mapping
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.errors import MemoryScopeError

MAX_TTL_SECONDS = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class WorkingKey:
    """Where a run's state is kept: tenant, project or none, user, session, run."""

    tenant: str
    project: str | None
    user: str
    session: str
    run: str

    @property
    def key(self) -> str:
        """One string for the five parts, injective."""
        parts = [self.tenant, self.project, self.user, self.session, self.run]
        return json.dumps(parts, ensure_ascii=False)


def working_key(owner: MemoryOwner) -> WorkingKey:
    """The key of the owner's run; MemoryScopeError without principal, session and run."""
    user = owner_user(owner)
    incomplete = owner.principal_id is None or owner.session_id is None or owner.run_id is None
    if user is None or incomplete or owner.session_id is None or owner.run_id is None:
        raise MemoryScopeError("working memory needs an owner with principal, session and run")
    return WorkingKey(owner.tenant_id, owner.project_id, user, owner.session_id, owner.run_id)


def checked_ttl(seconds: object) -> int:
    """A time to live in seconds, 1 s to 365 days."""
    return checks.whole("ttl_seconds", seconds, low=1, high=MAX_TTL_SECONDS)


def checked_state(state: object) -> Mapping[str, Any]:
    """A frozen copy of a JSON object; ValueError for anything else."""
    return freeze_mapping("state", state)
