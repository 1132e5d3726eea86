"""The audience that stores query by is the visibility rule, for every owner and caller."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment import MemoryOwner, MemoryScope, visible_to
from muniment.domain.visibility import audience_key, audiences, message_audience

NAMES = st.sampled_from(
    ["acme", "acme-corp", "acme_", "acm%", "ACME", "*", '"', "\\", "a,b", "Zoë", "null", "[]"]
)
MAYBE = st.none() | NAMES
OWNERS = st.builds(
    MemoryOwner,
    NAMES,
    project_id=MAYBE,
    user_id=MAYBE,
    principal_id=MAYBE,
    session_id=MAYBE,
    run_id=MAYBE,
)


@given(OWNERS, OWNERS, st.sampled_from(MemoryScope))
def test_visibility_is_equality_of_audiences(
    owner: MemoryOwner, caller: MemoryOwner, scope: MemoryScope
) -> None:
    mine = audience_key(scope, owner)
    assert visible_to(scope, owner, caller) == (
        mine is not None and mine == audience_key(scope, caller)
    )


@given(OWNERS, OWNERS, st.sampled_from(MemoryScope))
def test_a_row_is_selected_exactly_when_it_is_visible(
    owner: MemoryOwner, caller: MemoryOwner, scope: MemoryScope
) -> None:
    row = audience_key(scope, owner)
    assert (row in audiences(caller)) == visible_to(scope, owner, caller)


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_users_never_share_a_message_audience(a: str, b: str, c: str, d: str) -> None:
    assert (message_audience(a, b) == message_audience(c, d)) == ((a, b) == (c, d))
