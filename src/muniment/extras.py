"""What to say where an optional dependency is not installed."""

from __future__ import annotations

from muniment.errors import MemoryConfigurationError


def missing_extra(extra: str) -> MemoryConfigurationError:
    """The error that names the extra and the command that installs it."""
    return MemoryConfigurationError(
        f"this needs the extra {extra!r}: pip install 'muniment[{extra}]'"
    )
