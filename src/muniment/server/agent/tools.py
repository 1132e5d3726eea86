"""The tools of a run: the operator's, and memory where the request asks for it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from muniment.agent_tools import AgentMemoryTools
from muniment.errors import MunimentError

_MOST_CHARACTERS = 100_000
_log = logging.getLogger("muniment.server.agent")


class Tools:
    """Tools by name; memory's come first where `memory` is given."""

    def __init__(self, given: Sequence[BaseTool], memory: AgentMemoryTools | None) -> None:
        self._given = {tool.name: tool for tool in given}
        self._memory = memory
        described = () if memory is None else memory.definitions
        self._of_memory = frozenset(each["name"] for each in described)
        self.definitions: list[dict[str, Any]] = [
            *({"type": "function", "function": each} for each in described),
            *(convert_to_openai_tool(tool) for tool in given if tool.name not in self._of_memory),
        ]

    async def result(self, call: dict[str, Any]) -> dict[str, Any]:
        """The message that answers a tool call. A tool's failure is told to the model."""
        function = call.get("function")
        named = function if isinstance(function, dict) else {}
        content = await self._content(str(named.get("name")), named.get("arguments"))
        return {"role": "tool", "tool_call_id": call.get("id"), "content": content}

    async def _content(self, name: str, arguments: object) -> str:
        try:
            values = json.loads(arguments) if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            return _error("the arguments must be JSON")
        if not isinstance(values, dict):
            return _error("the arguments must be an object")
        if name in self._of_memory and self._memory is not None:
            return await _of_memory(self._memory, name, values)
        tool = self._given.get(name)
        return _error("no such tool") if tool is None else await _of_tool(tool, values)


async def _of_memory(memory: AgentMemoryTools, name: str, values: dict[str, Any]) -> str:
    try:
        return json.dumps(await memory.call(name, values), ensure_ascii=False)
    except MunimentError as error:
        return _error(str(error))  # fit to be told: it names fields and quotes nothing


async def _of_tool(tool: BaseTool, values: dict[str, Any]) -> str:
    try:
        found = await tool.ainvoke(values)
    except Exception as error:
        _log.warning("a tool failed (%s)", type(error).__name__)
        return _error("the tool failed")
    text = found if isinstance(found, str) else json.dumps(found, default=str, ensure_ascii=False)
    return text[:_MOST_CHARACTERS]


def _error(problem: str) -> str:
    return json.dumps({"error": problem})
