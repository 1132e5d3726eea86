"""Tool calls as JSON text, in LangChain's and in OpenAI's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """What could be read: calls whose arguments are an object, and the others as they came.

    Both are dicts in LangChain's shape (`ToolCall` and `InvalidToolCall`).
    """

    valid: tuple[dict[str, Any], ...] = ()
    invalid: tuple[dict[str, Any], ...] = ()


def read_json(text: str | None) -> Any:
    """The value of `text`; None where there is none or it cannot be read."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_tool_calls(text: str | None) -> ToolCalls:
    """The calls in `text`; entries that name no tool are passed over."""
    value = read_json(text)
    entries = value if isinstance(value, list) else []
    calls = [call for call in map(_read, entries) if call is not None]
    return ToolCalls(
        tuple(call for call in calls if call["type"] == "tool_call"),
        tuple(call for call in calls if call["type"] == "invalid_tool_call"),
    )


def write_tool_calls(calls: ToolCalls) -> str | None:
    """JSON text in LangChain's shape; None where there are no calls."""
    entries = [*calls.valid, *calls.invalid]
    # Sorted, so that the same calls are the same text whoever put their fields in order.
    return json.dumps(entries, ensure_ascii=False, sort_keys=True, default=str) if entries else None


def _read(entry: object) -> dict[str, Any] | None:
    if not isinstance(entry, Mapping):
        return None
    function = entry.get("function")
    if isinstance(function, Mapping):
        name, arguments = function.get("name"), function.get("arguments")
    else:
        name, arguments = entry.get("name"), entry.get("args")
    if not isinstance(name, str) or not name:
        return None
    identifier = entry.get("id")
    return _call(name, arguments, identifier if isinstance(identifier, str) else None)


def _call(name: str, arguments: object, identifier: str | None) -> dict[str, Any]:
    read = read_json(arguments) if isinstance(arguments, str) else arguments
    if read is None and arguments in (None, ""):
        read = {}
    if isinstance(read, dict):
        return {"name": name, "args": read, "id": identifier, "type": "tool_call"}
    kept = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "name": name,
        "args": kept,
        "id": identifier,
        "error": "the arguments are not a JSON object",
        "type": "invalid_tool_call",
    }
