"""What a model may write."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, unit

EXTRACTION = (
    Mutation(
        "importance is clamped, and not-a-number is nothing",
        "extraction/scoping.py",
        "return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))",
        "return value",
        unit("promises_writes", "importance_is_brought_within_zero_and_one"),
    ),
    Mutation(
        "what is unimportant is dropped",
        "extraction/intake.py",
        "elif importance < self._policy.extraction_min_importance:",
        "elif False:",
        unit("extraction", "unimportant_blank_and_secret_proposals_are_dropped_and_counted"),
    ),
    Mutation(
        "a secret is never stored by extraction",
        "extraction/intake.py",
        "elif holds_secret(content):",
        "elif False:",
        unit("extraction", "unimportant_blank_and_secret_proposals_are_dropped_and_counted"),
    ),
    Mutation(
        "a secret is never stored by an agent's tool",
        "agent_tools.py",
        "if holds_secret(wanted.content):",
        "if False:",
        unit("agent_tools", "bad_arguments_store_nothing"),
    ),
    Mutation(
        "a random run of letters and digits is a secret",
        "extraction/secrets.py",
        "return kinds >= 2 and any(map(str.isdigit, run)) and _entropy(run) >= ENTROPY_BITS",
        "return False",
        ("tests/unit/test_secrets.py",),
    ),
    Mutation(
        "a scope that is too wide becomes the session's",
        "context/policy.py",
        "return scope if allowed else MemoryScope.SESSION",
        "return scope",
        unit("extraction", "a_conversation_writes_only_where_it_may"),
    ),
    Mutation(
        "PROJECT is written under the policy's gate only",
        "context/policy.py",
        "scope is MemoryScope.PROJECT and self.extraction_project_scope",
        "scope is MemoryScope.PROJECT",
        unit("extraction", "a_conversation_writes_only_where_it_may"),
    ),
    Mutation(
        "a PROJECT fact without a project becomes the session's",
        "extraction/scoping.py",
        "return scope if scope_query_owner(owner, scope) is not None else MemoryScope.SESSION",
        "return scope",
        unit("extraction", "a_project_fact_without_a_project_stays_in_the_session"),
    ),
    Mutation(
        "a PROJECT memory is superseded only by its author",
        "extraction/supersession.py",
        "return scope is not MemoryScope.PROJECT or owner_user(prior.owner) == owner_user(owner)",
        "return True",
        unit("extraction", "a_project_memory_is_superseded_only_by_its_author"),
    ),
    Mutation(
        "lower trust never supersedes higher",
        "extraction/supersession.py",
        "if prior.trust > trust:",
        "if False:",
        unit("extraction", "lower_trust_never_supersedes_higher"),
    ),
    Mutation(
        "several references supersede none",
        "extraction/supersession.py",
        "if len(found) != 1:",
        "if not found:",
        unit("extraction", "over_eager_supersession_of_several_supersedes_none"),
    ),
    Mutation(
        "a reference to another scope or to what is closed does nothing",
        "extraction/supersession.py",
        "if prior.scope is not scope or prior.superseded_by is not None:",
        "if False:",
        unit("extraction", "a_reference_that_may_do_nothing_does_nothing"),
    ),
    Mutation(
        "a restatement is known from the threshold on",
        "extraction/dedup.py",
        "if match.score < self._policy.dedup_threshold or match.memory_id in skipped:",
        "if match.memory_id in skipped:",
        unit("extraction", "a_restatement_is_known_by_similarity"),
    ),
    Mutation(
        "a restatement is one within the same scope only",
        "extraction/dedup.py",
        "return live and row.scope is fact.scope and row.memory_type in RECALLED_TYPES",
        "return live and row.memory_type in RECALLED_TYPES",
        unit("extraction", "similarity_in_another_scope_is_no_restatement"),
    ),
    Mutation(
        "a changed number or negation is no restatement",
        "extraction/dedup.py",
        "if not differs(row.content, fact.content):",
        "if True:",
        unit("promises_writes", "another_number_or_a_negation_is_news_however_similar"),
    ),
    Mutation(
        "an echo of what is known is no new fact",
        "extraction/dedup.py",
        "if row.scope.width >= scope.width and normalize_content(row.content) == wanted",
        "if False",
        unit("extraction", "an_echo_of_what_is_known_is_no_new_fact"),
    ),
    Mutation(
        "extracted facts are of trust model",
        "extraction/facts.py",
        "trust=Trust.MODEL,",
        "trust=Trust.OWNER,",
        unit("extraction", "a_fact_is_stored_with_its_title_deeds"),
    ),
    Mutation(
        "an owner field from a model is an error",
        "agent_tools.py",
        'model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)',
        'model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)',
        unit("agent_tools", "an_owner_field_from_a_model_is_an_error"),
    ),
)
