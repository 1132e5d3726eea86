"""The default token estimate, and what a replacement must promise."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.errors import MemoryConfigurationError
from muniment.governance.tokens import checked_estimator, estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("é", 1), ("éé", 2), ("咖啡", 2), ("🙂", 2)],
)
def test_a_token_is_three_bytes_rounded_up(text: str, tokens: int):
    assert estimate_tokens(text) == tokens


def test_a_lone_surrogate_is_counted_not_refused():
    assert estimate_tokens("\ud800") == 1


def test_no_estimator_means_the_default():
    assert checked_estimator(None) is estimate_tokens


def test_an_estimator_of_positive_ints_is_used():
    assert checked_estimator(len)("four") == 4


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None, "3"])
def test_any_other_count_is_an_error(count: Any):
    with pytest.raises(MemoryConfigurationError, match="positive int"):
        checked_estimator(lambda _text: count)("text")


def test_an_estimator_must_be_callable():
    with pytest.raises(MemoryConfigurationError, match="callable"):
        checked_estimator(3)  # type: ignore[arg-type]
