"""The graph of a run: ask the model, run the tools that it calls, ask again."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from muniment.server.agent.asking import Tell
from muniment.server.agent.asking import asked as asked_of
from muniment.server.agent.tools import Tools
from muniment.server.upstream import ChatModel, Message, first_choice

MOST_STEPS = 50
_MOST_CALLS = 16


class Run(TypedDict):
    """What a run's checkpoint holds, as JSON text: a saver's own format takes not all of JSON."""

    messages: Annotated[list[str], operator.add]
    asked: str
    reply: str


def run_of(messages: Sequence[Message], asked: dict[str, Any]) -> Run:
    """A run that has not begun."""
    return Run(messages=[json.dumps(each) for each in messages], asked=json.dumps(asked), reply="")


Compiled = CompiledStateGraph[Run, None, Run, Run]


def graph_of(
    model: ChatModel,
    tools: Callable[[dict[str, Any]], Tools],
    checkpointer: BaseCheckpointSaver[Any] | None,
    tell: Tell | None = None,
) -> Compiled:
    """A graph whose steps `checkpointer` keeps; `tools` gives the tools of what was asked, and
    `tell` takes the model's text as it comes."""

    async def ask(state: Run) -> dict[str, Any]:
        asked = json.loads(state["asked"])
        options = dict(asked["options"])
        definitions = tools(asked).definitions
        if definitions:
            options["tools"] = definitions
        messages = [json.loads(each) for each in state["messages"]]
        reply = await asked_of(model, messages, options, tell)
        message = {"role": "assistant", **first_choice(reply)["message"]}
        return {"messages": [json.dumps(message)], "reply": json.dumps(reply)}

    async def run_tools(state: Run) -> dict[str, Any]:
        bound = tools(json.loads(state["asked"]))
        results = [await bound.result(call) for call in _calls(state)]
        return {"messages": [json.dumps(each) for each in results]}

    def after(state: Run) -> str:
        return "tools" if _calls(state) else END

    graph = StateGraph(Run)
    graph.add_node("ask", ask)
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", after, ["tools", END])
    graph.add_edge("tools", "ask")
    return graph.compile(checkpointer=checkpointer)


def _calls(state: Run) -> list[dict[str, Any]]:
    """The tool calls of the newest message."""
    calls = json.loads(state["messages"][-1]).get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    return [call for call in listed if isinstance(call, dict)][:_MOST_CALLS]
