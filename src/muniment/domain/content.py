"""The identity of a memory's content."""

from __future__ import annotations

import hashlib
import unicodedata

from muniment.domain.scope import MemoryScope


def normalize_content(content: str) -> str:
    """Runs of white space as one blank, trimmed, case folded. Punctuation is kept."""
    return " ".join(content.split()).casefold()


def content_hash(content: str, scope: MemoryScope) -> str:
    """SHA-256 over the scope's value, a newline and the normalized content, as hex."""
    name = scope if type(scope) is MemoryScope else MemoryScope(scope)
    text = f"{name}\n{normalize_content(content)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def says_something(text: str) -> bool:
    """Whether anything visible is left without white space, control and zero-width characters."""
    return any(unicodedata.category(char)[0] not in "CZ" for char in text)
