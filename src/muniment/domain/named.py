"""Enums of text that their members' names make too."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class NamedEnum(StrEnum):
    """A string enum that takes a member's value or its name: ``Trust("owner")``, ``"OWNER"``."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls.__members__.get(value) if isinstance(value, str) else None

    @classmethod
    def spellings(cls) -> dict[str, Self]:
        """Every text that makes a member."""
        return {text: member for member in cls for text in (member.value, member.name)}
