"""What must be refused."""

from __future__ import annotations

from collections.abc import Awaitable


async def refused(error: type[Exception], call: Awaitable[object]) -> Exception:
    """The error that `call` raises; AssertionError where it raises none of this type."""
    try:
        await call
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was not raised")
