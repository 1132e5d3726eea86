"""A model that proposes what it is told to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muniment.errors import StructuredOutputUnsupported


class ProposingModel:
    """`facts` go out as structured output; with `text`, structured output is refused."""

    def __init__(
        self, *facts: dict[str, Any], text: object = None, error: Exception | None = None
    ) -> None:
        self.facts: list[Any] | Callable[[str], list[Any]] = list(facts)
        self.text = text
        self.error = error
        self.asked: list[str] = []

    async def generate_structured(self, *, schema: Any, system: str, user: str) -> Any:
        if self.error is not None:
            raise self.error
        if self.text is not None:
            raise StructuredOutputUnsupported("no")
        self.asked.append(user)
        facts = self.facts(user) if callable(self.facts) else self.facts
        return schema.model_validate({"facts": facts})

    async def generate_text(self, *, system: str, user: str) -> Any:
        if self.error is not None:
            raise self.error
        self.asked.append(user)
        return self.text


def proposed(content: str, **fields: Any) -> dict[str, Any]:
    given = {"memory_type": "fact", "scope": "user", "importance": 0.8, "entities": []}
    return {"content": content, **given, "replaces": "", **fields}
