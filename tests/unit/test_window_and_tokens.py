"""Counting tokens, clipping, and the window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment import approximate_tokens, trim_window
from muniment.context.tokens import clip
from muniment.context.window import keep_boundary, window_tokens
from muniment.domain.conversation import ConversationMessage, ConversationRole
from tests.doubles.turn import exchanges, message


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("咖啡", 2), ("ab咖", 2)]
)
def test_tokens_are_a_quarter_of_the_ascii_characters_and_one_for_every_other(
    text: str, tokens: int
) -> None:
    assert approximate_tokens(text) == tokens


@given(st.text(max_size=400), st.integers(4, 50))
def test_a_clipped_text_fits_and_keeps_head_and_tail(text: str, most: int) -> None:
    clipped = clip(text, most, approximate_tokens)
    assert approximate_tokens(clipped) <= most
    assert clipped == text or clipped[:1] == text[:1]


def test_the_newest_messages_are_kept_and_the_window_opens_on_a_user_message() -> None:
    window = trim_window(exchanges(5, tokens=10), max_tokens=35, counter=len)
    assert [each.message_id for each in window] == ["m9", "m10"]


@pytest.mark.parametrize(("budget", "kept"), [(40, 4), (39, 2)])
def test_a_window_fills_its_budget_to_the_last_token_and_no_further(budget: int, kept: int) -> None:
    assert len(trim_window(exchanges(5, tokens=10), max_tokens=budget, counter=len)) == kept


def test_a_messages_own_count_wins_over_an_estimate() -> None:
    long = message(1, content="x" * 4000, tokens=1)
    assert trim_window([long], max_tokens=1, counter=len) == (long,)
    assert window_tokens([long, message(2, content="abc")], len) == 4


def test_a_budget_too_small_for_one_message_still_keeps_the_newest() -> None:
    window = trim_window(exchanges(3, tokens=10), max_tokens=5, counter=len)
    assert [each.message_id for each in window] == ["m6"]


def test_a_tool_result_as_the_newest_message_keeps_its_call() -> None:
    history = [
        message(1, tokens=50),
        message(2, "assistant", calls='[{"id":"a"},{"id":"b"}]', tokens=50),
        message(3, "tool", "one", tokens=50),
        message(4, "tool", "two", tokens=50),
    ]
    window = trim_window(history, max_tokens=60, counter=len)
    assert [each.message_id for each in window] == ["m2", "m3", "m4"]


def test_an_empty_history_is_an_empty_window() -> None:
    assert trim_window([], max_tokens=10) == ()


def test_the_boundary_is_walked_back_to_a_user_message() -> None:
    chain = [message(1), message(2, "assistant", calls="[]"), *(message(n, "tool") for n in (3, 4))]
    assert keep_boundary([*exchanges(1, first=10), *chain], keep=2) == 2
    assert keep_boundary(chain, keep=2) == 0


ROLES = st.sampled_from(["user", "assistant", "call", "tool"])


def _history(shape: list[tuple[str, int]]) -> list[ConversationMessage]:
    return [
        message(n, "assistant", calls="[]", tokens=size)
        if role == "call"
        else message(n, role, tokens=size)
        for n, (role, size) in enumerate(shape)
    ]


@given(st.lists(st.tuples(ROLES, st.integers(0, 30)), max_size=15), st.integers(1, 100))
def test_a_window_is_the_newest_suffix_within_the_budget_or_the_newest_message(
    shape: list[tuple[str, int]], budget: int
) -> None:
    history = _history(shape)
    window = trim_window(history, max_tokens=budget, counter=len)
    assert list(window) == history[len(history) - len(window) :]
    assert bool(window) == bool(history)
    if window and window[0].role is not ConversationRole.USER:
        tools = [each.role for each in window[1:]]
        assert all(role is ConversationRole.TOOL for role in tools)
    elif window and len(window) > 1:
        assert window_tokens(window, len) <= budget
