"""Tool calls of a streamed answer, put together from their fragments."""

from __future__ import annotations

from typing import Any

_MOST_CALLS = 128


class ToolCalls:
    """Collects the fragments of a stream's tool calls by their index."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, fragments: object) -> None:
        """Take one chunk's fragments; rubbish is passed over."""
        for fragment in fragments if isinstance(fragments, list) else []:
            index = fragment.get("index") if isinstance(fragment, dict) else None
            if isinstance(index, int) and (index in self._calls or len(self._calls) < _MOST_CALLS):
                self._merge(index, fragment)

    def _merge(self, index: int, fragment: dict[str, Any]) -> None:
        call = self._calls.setdefault(
            index, {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
        )
        call["id"] = call["id"] or fragment.get("id")
        function = fragment.get("function")
        for name in ("name", "arguments"):
            part = function.get(name) if isinstance(function, dict) else None
            call["function"][name] += part if isinstance(part, str) else ""

    def whole(self) -> list[dict[str, Any]]:
        """The calls, in order."""
        return [self._calls[index] for index in sorted(self._calls)]
