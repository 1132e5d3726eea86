"""Each field that a scope keys on separates owners, and no two scopes share an audience."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muniment import MemoryOwner, MemoryScope, visible_to
from muniment.domain.visibility import audience_key

ANA = MemoryOwner(
    "same", project_id="same", user_id="same", principal_id="key", session_id="same", run_id="same"
)
KEYED = {
    MemoryScope.TENANT: ("tenant_id",),
    MemoryScope.PROJECT: ("tenant_id", "project_id"),
    MemoryScope.USER: ("tenant_id", "user_id"),
    MemoryScope.SESSION: ("tenant_id", "user_id", "session_id"),
    MemoryScope.RUN: ("tenant_id", "user_id", "session_id", "run_id"),
}


@pytest.mark.parametrize(("scope", "names"), KEYED.items())
def test_an_owner_who_differs_in_one_field_sees_nothing(
    scope: MemoryScope, names: tuple[str, ...]
) -> None:
    assert visible_to(scope, ANA, ANA)
    for name in names:
        other = replace(ANA, **{name: "other"})
        assert not visible_to(scope, ANA, other), name
        assert audience_key(scope, ANA) != audience_key(scope, other), name


def test_no_two_scopes_share_an_audience() -> None:
    keys = [audience_key(scope, ANA) for scope in MemoryScope]
    assert len(set(keys)) == len(MemoryScope)
