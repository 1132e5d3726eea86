"""Values that several requests hold."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, StringConstraints

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Text = Annotated[str, StringConstraints(max_length=1 << 20)]


def _instant(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 date or time")
    try:
        read = datetime.fromisoformat(value)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be ISO 8601, within years 1 to 9999 in UTC") from None


Instant = Annotated[datetime, BeforeValidator(_instant)]
"""ISO 8601; UTC where it names no zone."""
