"""A session's first title: the beginning of its first question."""

from __future__ import annotations

WORDS = 10
CHARACTERS = 80


def title_of(prompt: str) -> str:
    """Up to ten words of `prompt` in at most 80 characters; only a single longer word is cut."""
    words = prompt.split()[:WORDS]
    while len(words) > 1 and len(" ".join(words)) > CHARACTERS:
        words.pop()
    return " ".join(words)[:CHARACTERS]
