"""What a language model is asked to reply with: strict schemas, read forgivingly.

The JSON schema of each reply is strict (no additional properties, every property required), as
providers of structured output demand. Validation is lenient where a model's slip is harmless, so
that one malformed entry never costs the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

FACT_TYPES = ("fact", "preference", "decision", "episode")
FACT_SCOPES = ("user", "project", "session")


def _require_all(schema: dict[str, Any]) -> None:
    """Every property required and without default: what strict structured output asks for."""
    properties: dict[str, Any] = schema.get("properties", {})
    schema["required"] = list(properties)
    for field in properties.values():
        field.pop("default", None)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float:
    """A number or numeric text; anything else is 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return 0.0
    try:
        return float(value)
    except (ValueError, OverflowError):
        return 0.0


def _texts(value: object) -> list[str]:
    """The text among a list; a lone text is a list of one."""
    if isinstance(value, str):
        return [value]
    items: list[object] = list(value) if isinstance(value, (list, tuple)) else []
    return [item for item in items if isinstance(item, str)]


def _reference(value: object) -> str:
    """A reference, or several as one text with blanks between."""
    return " ".join(_texts(value))


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=_require_all)


class ExtractedFact(_Reply):
    """One proposed fact, as the model gave it: unknown types and scopes are read later."""

    content: str = Field(description="One atomic fact in the third person, complete by itself.")
    memory_type: Annotated[str, BeforeValidator(_text)] = Field(
        default="fact", json_schema_extra={"enum": list(FACT_TYPES)}
    )
    scope: Annotated[str, BeforeValidator(_text)] = Field(
        default="session", json_schema_extra={"enum": list(FACT_SCOPES)}
    )
    importance: Annotated[float, BeforeValidator(_number)] = Field(
        default=0.5, description="0 (trivial) to 1 (essential)."
    )
    entities: Annotated[list[str], BeforeValidator(_texts)] = Field(
        default_factory=list, description="Names of the people, places and things it is about."
    )
    replaces: Annotated[str, BeforeValidator(_reference)] = Field(
        default="", description="The bracketed label of the one memory this changes, or empty."
    )


class ProposedFacts(_Reply):
    """The proposed facts of a conversation; `malformed` entries were left out while reading."""

    facts: list[ExtractedFact]
    _malformed: int = PrivateAttr(default=0)

    @property
    def malformed(self) -> int:
        """How many entries could not be read."""
        return self._malformed

    @model_validator(mode="wrap")
    @classmethod
    def _keep_the_good(
        cls, value: Any, handler: ModelWrapValidatorHandler[ProposedFacts]
    ) -> ProposedFacts:
        entries = _entries(value)
        if entries is None:
            return handler(value)
        read = [read_fact(entry) for entry in entries]
        kept = [fact for fact in read if fact is not None]
        reply = handler({"facts": kept})
        reply._malformed = len(read) - len(kept)
        return reply


class CondenseRequest(_Reply):
    """A question as one standalone query, and the types of memory that it wants."""

    query: str = Field(description="The question, complete without the conversation.")
    wanted_types: Annotated[list[str], BeforeValidator(_texts)] = Field(
        default_factory=list,
        description="At most three of fact, preference, decision, episode.",
    )


def read_fact(entry: object) -> ExtractedFact | None:
    """The fact in `entry`, whatever else it holds, or None where there is no content in it."""
    if isinstance(entry, ExtractedFact):
        return entry
    if not isinstance(entry, Mapping):
        return None
    known = {name: entry[name] for name in ExtractedFact.model_fields if name in entry}
    try:
        return ExtractedFact.model_validate(known)
    except ValidationError:
        return None


def _entries(value: object) -> list[object] | None:
    if isinstance(value, Mapping):
        facts: object = value.get("facts")
        return list(facts) if isinstance(facts, (list, tuple)) else None
    return None
