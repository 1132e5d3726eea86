"""Ranking, the block and what is not believed."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, unit

RECALL = (
    Mutation(
        "recency is never above one",
        "context/ranking.py",
        "hours = max(0.0, (now - memory.updated_at).total_seconds() / 3600)",
        "hours = (now - memory.updated_at).total_seconds() / 3600",
        unit("ranking_and_rendering", "recency_halves_every_half_life_and_never_exceeds_one"),
    ),
    Mutation(
        "entities count by the share of the memory's own",
        "context/ranking.py",
        "/ max(1, len(own))",
        "/ max(1, len(anchor.entity_ids))",
        unit("promises_turn", "few_of_many_entities_count_for_little"),
    ),
    Mutation(
        "importance is a factor of the score",
        "context/ranking.py",
        "(1 + recency) * (1 + memory.importance)",
        "(1 + recency)",
        unit("ranking_and_rendering", "the_score_is_the_product_of_relevance_and_every_factor"),
    ),
    Mutation(
        "a wanted type raises the score",
        "context/ranking.py",
        "return affinity.weight if memory.memory_type in affinity.types else 0.0",
        "return 0.0",
        unit("ranking_and_rendering", "a_wanted_type_counts_with_the_whole_weight"),
    ),
    Mutation(
        "ties go to the narrower scope",
        "context/ranking.py",
        "return (-score, memory.scope.width, memory.memory_id)",
        "return (-score, 0, memory.memory_id)",
        unit("ranking_and_rendering", "ties_go_to_the_narrower_scope_then_the_id"),
    ),
    Mutation(
        "of two that say the same the best is kept",
        "context/ranking.py",
        "content = normalize_content(candidate.memory.content)",
        "content = candidate.memory.memory_id",
        unit("ranking_and_rendering", "of_the_same_normalized_content_the_best_stays"),
    ),
    Mutation(
        "what was left out as out of reach is asked for where it may come next",
        "context/recall.py",
        "if looked_at >= reach.rows:",
        "if looked_at > 10 * reach.rows:",
        ("tests/property/test_recall_reach.py",),
    ),
    Mutation(
        "the block is a prefix of the ranking",
        "context/ranking.py",
        'elif overflow == "stop":',
        "elif False:",
        unit("ranking_and_rendering", "the_block_is_a_prefix_cut_at_the_first_that_does_not_fit"),
    ),
    Mutation(
        "a configured skip mode passes over what does not fit",
        "context/ranking.py",
        'elif overflow == "stop":',
        "else:",
        unit("ranking_and_rendering", "in_skip_mode_a_memory_that_does_not_fit_is_passed_over"),
    ),
    Mutation(
        "nothing inside can close the fence",
        "context/rendering.py",
        '"<": "&lt;", ',
        "",
        unit("ranking_and_rendering", "no_content_can_close_the_fence_or_forge_a_line"),
    ),
    Mutation(
        "a memory takes one line",
        "context/rendering.py",
        '" ".join(text.split())',
        "text",
        unit(
            "ranking_and_rendering",
            "no_content_can_close_the_fence_or_forge_a_line",
            "whatever_is_remembered_takes_one_line",
        ),
    ),
    Mutation(
        "a separate index is not believed about who may see",
        "context/candidates.py",
        "and visible_to(scope, memory.owner, wanted.owner)",
        "",
        unit(
            "recall",
            "what_a_foreign_repository_should_not_have_given_is_dropped",
            "a_separate_index_is_hydrated_and_never_believed",
        ),
    ),
    Mutation(
        "a separate index is not believed about validity",
        "context/candidates.py",
        "and memory.is_valid_at(wanted.as_of or wanted.now)",
        "",
        unit("promises_turn", "an_index_cannot_bring_back_what_is_no_longer_true"),
    ),
    Mutation(
        "a separate index is not believed about trust",
        "context/candidates.py",
        "and memory.trust >= wanted.min_trust",
        "",
        unit(
            "recall",
            "what_a_foreign_repository_should_not_have_given_is_dropped",
            "a_separate_index_is_hydrated_and_never_believed",
        ),
    ),
    Mutation(
        "with as_of, recency counts from then",
        "context/recall.py",
        "now=request.as_of or self._clock(),",
        "now=self._clock(),",
        unit("recall", "as_of_is_passed_on_and_recency_counts_from_then"),
    ),
    Mutation(
        "messages after the instant asked about are not found",
        "evidence/eligibility.py",
        "eligible &= ~message | (corpus.at.view <= self.as_of)",
        "pass",
        unit("evidence", "a_row_outside_the_filters_is_not_found"),
    ),
    Mutation(
        "what is expired is not ranked",
        "evidence/eligibility.py",
        "corpus.alive.view & (corpus.expires_at.view > self.now)",
        "corpus.alive.view & True",
        unit("evidence", "a_row_outside_the_filters_is_not_found"),
    ),
    Mutation(
        "the weakest candidate stays above zero",
        "evidence/score.py",
        "return LEAST_RELEVANCE + (1 - LEAST_RELEVANCE) * spread(total)",
        "return spread(total)",
        unit("evidence", "relevance_is_one_for_the_best_and_above_zero_for_the_weakest"),
    ),
    Mutation(
        "an answer that repeats no word of its question is weighed",
        "evidence/shortlist.py",
        "    if around:",
        "    if not around:",
        unit("shortlist", "an_answer_that_repeats_no_word_of_its_question_is_listed"),
    ),
    Mutation(
        "the filters decide what is weighed, neighbours or not",
        "evidence/shortlist.py",
        "mask & (score > 0) if compared is None else",
        "(score > 0) if compared is None else",
        unit(
            "shortlist", "a_row_that_the_filters_leave_out_is_not_listed_but_counts_as_a_neighbour"
        ),
    ),
    Mutation(
        "typed memories are weighed beside messages that mean as much",
        "evidence/shortlist.py",
        "return own * (1 + BEFORE + AFTER)",
        "return own",
        unit("shortlist", "a_fact_is_listed_before_messages_that_mean_as_much"),
    ),
    Mutation(
        "a message of another session is no neighbour",
        "evidence/shortlist.py",
        "score[alone] += share * (own[alone] - own[-1])",
        "pass",
        unit(
            "shortlist", "a_row_that_the_filters_leave_out_is_not_listed_but_counts_as_a_neighbour"
        ),
    ),
    Mutation(
        "finding an image makes no other",
        "stores/kept.py",
        "            if image is None:",
        "            if True:",
        unit("kept", "an_image_is_made_once"),
    ),
)
