"""The facade."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, unit

TIERS = (
    Mutation(
        "GLOBAL is not written through the facade",
        "tiers/long_term.py",
        "if memory.scope is MemoryScope.GLOBAL:",
        "if False:",
        unit("manager", "nothing_is_saved_that_the_caller_could_not_see_or_claim"),
    ),
    Mutation(
        "a borrowed user is refused",
        "tiers/long_term.py",
        "if owner.user_id is not None and owner.user_id != owner_user(caller):",
        "if False:",
        unit("manager", "nothing_is_saved_that_the_caller_could_not_see_or_claim"),
    ),
    Mutation(
        "any other borrowed field is refused",
        "tiers/long_term.py",
        "    if borrowed:",
        "    if False:",
        unit("manager", "nothing_is_saved_that_the_caller_could_not_see_or_claim"),
    ),
    Mutation(
        "nothing is saved that its writer could not see",
        "tiers/long_term.py",
        "if not visible_to(memory.scope, owner, caller):",
        "if False:",
        unit("manager", "nothing_is_saved_that_the_caller_could_not_see_or_claim"),
    ),
    Mutation(
        "a query is made by its owner",
        "tiers/long_term.py",
        "if query.owner != caller:",
        "if False:",
        unit("manager", "a_query_of_another_owner_is_refused"),
    ),
    Mutation(
        "a snapshot with a query needs a long-term tier",
        "manager.py",
        "self.search(owner, query) if query else _empty(()),",
        "self.search(owner, query) if query and self._long_term else _empty(()),",
        unit("manager", "a_tier_that_is_not_configured_is_an_error_of_configuration"),
    ),
    Mutation(
        "working state goes out as a copy",
        "tiers/working.py",
        "state: dict[str, Any] = thaw(await self._store.get(owner) or {})",
        "state: dict[str, Any] = dict(await self._store.get(owner) or {})",
        unit("promises_writes", "a_scratch_state_is_the_callers_own_copy"),
    ),
    Mutation(
        "working state goes in as a copy",
        "tiers/working.py",
        'await self._store.put(owner, thaw(freeze_mapping("state", state)), ttl_seconds=ttl)',
        "await self._store.put(owner, state, ttl_seconds=ttl)",
        unit("promises_writes", "a_state_that_is_handed_in_stays_the_callers_own"),
    ),
)
