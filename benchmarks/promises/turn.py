"""Window, summary, question and the bounds of a turn."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, unit

TURN = (
    Mutation(
        "a window opens on a user message",
        "context/window.py",
        "if messages[place].role is ConversationRole.USER:",
        "if True:",
        unit(
            "window_and_tokens",
            "the_newest_messages_are_kept_and_the_window_opens_on_a_user_message",
        ),
    ),
    Mutation(
        "a tool result is never cut from its call",
        "context/window.py",
        "return place if called else newest",
        "return newest",
        unit("window_and_tokens", "a_tool_result_as_the_newest_message_keeps_its_call"),
    ),
    Mutation(
        "the window keeps to its budget",
        "context/window.py",
        "if left < 0:",
        "if left < -1:",
        unit(
            "window_and_tokens",
            "the_newest_messages_are_kept_and_the_window_opens_on_a_user_message",
            "a_window_is_the_newest_suffix_within_the_budget_or_the_newest_message",
        ),
    ),
    Mutation(
        "the boundary of a summary is walked back to a user message",
        "context/window.py",
        "while place > 0 and messages[place].role is not ConversationRole.USER:",
        "while False:",
        unit("window_and_tokens", "the_boundary_is_walked_back_to_a_user_message"),
    ),
    Mutation(
        "a message's own token count wins over an estimate",
        "context/tokens.py",
        "if message.token_count is not None:",
        "if False:",
        unit("window_and_tokens", "a_messages_own_count_wins_over_an_estimate"),
    ),
    Mutation(
        "covered messages leave the window",
        "context/summary.py",
        "return tuple(messages[place + 1 :])",
        "return tuple(messages[place:])",
        unit(
            "rolling_summary",
            "past_the_trigger_what_is_older_than_the_kept_messages_is_folded_in",
            "covered_messages_leave_the_window_and_are_never_summarized_again",
        ),
    ),
    Mutation(
        "covered messages are never summarized again",
        "context/folding.py",
        "return self._loaded[places[self._cursor] + 1 : boundary]",
        "return self._loaded[:boundary]",
        unit("rolling_summary", "covered_messages_leave_the_window_and_are_never_summarized_again"),
    ),
    Mutation(
        "a turn catches up by four pages at most",
        "context/folding.py",
        "MAX_PAGES = 4",
        "MAX_PAGES = 40",
        unit("rolling_summary", "a_frontier_older_than_the_window_is_caught_up_page_by_page"),
    ),
    Mutation(
        "a cursor that does not advance stops the catch-up",
        "context/folding.py",
        "if any(m.message_id == self._cursor or m.message_id in self._folded for m in page):",
        "if False:",
        unit("rolling_summary", "a_cursor_that_does_not_advance_stops_the_catch_up"),
    ),
    Mutation(
        "two users with one session name have two summaries",
        "context/folding.py",
        "parts = [identity.tenant_id, identity.user_id, identity.session_id]",
        "parts = [identity.tenant_id, identity.session_id]",
        unit("rolling_summary", "the_row_id_is_of_tenant_user_and_session_alone"),
    ),
    Mutation(
        "a refresh restarts the summary's expiry",
        "context/folding.py",
        "expires_at=self._policy.retention.expires_at(MemoryScope.SESSION, updated),",
        "",
        unit("rolling_summary", "a_refresh_keeps_owner_and_provenance_and_restarts_the_expiry"),
    ),
    Mutation(
        "one call's input is bounded",
        "context/folding.py",
        "if lines and left < 0:",
        "if False:",
        unit("rolling_summary", "many_large_messages_take_several_bounded_calls"),
    ),
    Mutation(
        "a rewrite that is far too long is refused",
        "context/condense.py",
        "len(text) <= 4 * len(question) + 200",
        "len(text) <= 5 * len(question) + 200",
        unit("promises_turn", "a_rewrite_is_refused_from_the_first_character_too_many"),
    ),
    Mutation(
        "at most three types are wanted",
        "context/condense.py",
        "MAX_WANTED_TYPES = 3",
        "MAX_WANTED_TYPES = 4",
        unit("context_builder", "at_most_three_types_are_wanted"),
    ),
    Mutation(
        "disabled memory calls nothing",
        "context/builder.py",
        "if not self._policy.enabled:",
        "if False:",
        unit("context_builder", "disabled_memory_is_a_plain_window_and_the_unchanged_question"),
    ),
    Mutation(
        "recall leaves out the messages of the window",
        "context/builder.py",
        "exclude_message_ids=tuple(message.message_id for message in window),",
        "",
        unit("context_builder", "recalled_messages_never_include_those_of_the_window"),
    ),
    Mutation(
        "every outside call is bounded in time",
        "context/guarded.py",
        "async with asyncio.timeout(min(self._call_seconds, left)):",
        "async with asyncio.timeout(left):",
        unit("promises_turn", "a_call_that_hangs_costs_its_own_time_and_not_the_turns"),
    ),
    Mutation(
        "the turn as a whole is bounded in time",
        "context/guarded.py",
        "async with asyncio.timeout(min(self._call_seconds, left)):",
        "async with asyncio.timeout(self._call_seconds):",
        unit("promises_turn", "the_last_call_ends_with_the_turn"),
    ),
    Mutation(
        "cancellation from outside propagates",
        "context/guarded.py",
        "return task is not None and task.cancelling() > 0",
        "return False",
        unit("context_builder", "cancellation_from_outside_propagates"),
    ),
    Mutation(
        "a WARNING holds no text of a failure",
        "context/guarded.py",
        'except Exception as error:\n            self.warn(step, "failed", type(error).__name__)',
        'except Exception as error:\n            self.warn(step, "failed", str(error))',
        unit("recall", "a_failing_repository_recalls_nothing_and_logs_no_text"),
    ),
)
