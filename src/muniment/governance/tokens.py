"""How many tokens a text counts for in quotas, usage and search budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from muniment.errors import MemoryConfigurationError

TokenEstimator: TypeAlias = Callable[[str], int]

_BYTES_A_TOKEN = 3


def estimate_tokens(text: str) -> int:
    """One token per 3 UTF-8 bytes, rounded up; 0 for empty text only."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return -(-size // _BYTES_A_TOKEN)


def checked_estimator(estimator: TokenEstimator | None) -> TokenEstimator:
    """`estimator`, or the default for None, held to its promise.

    The result raises MemoryConfigurationError when the estimator returns anything but a
    positive int, because a zero or negative count would open every quota.
    """
    if estimator is None:
        return estimate_tokens
    if not callable(estimator):
        raise MemoryConfigurationError("token_estimator: must be callable")

    def checked(text: str) -> int:
        count = estimator(text)
        if type(count) is not int or count < 1:
            raise MemoryConfigurationError("token_estimator: must return a positive int")
        return count

    return checked
