"""The graph of a run: ask the model, run the tools that it calls, ask again."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from muniment.server.agent.tools import Tools
from muniment.server.upstream import ChatModel, Message, first_choice

MOST_STEPS = 50
_MOST_CALLS = 16


class Run(TypedDict):
    """What a run's checkpoint holds."""

    messages: Annotated[list[Message], operator.add]
    asked: dict[str, Any]
    reply: Message


Compiled = CompiledStateGraph[Run, None, Run, Run]


def graph_of(
    model: ChatModel,
    tools: Callable[[dict[str, Any]], Tools],
    checkpointer: BaseCheckpointSaver[Any] | None,
) -> Compiled:
    """A graph whose steps `checkpointer` keeps; `tools` gives the tools of what was asked."""

    async def ask(state: Run) -> dict[str, Any]:
        options = dict(state["asked"]["options"])
        definitions = tools(state["asked"]).definitions
        if definitions:
            options["tools"] = definitions
        reply = await model.complete(state["messages"], options)
        message = {"role": "assistant", **first_choice(reply)["message"]}
        return {"messages": [message], "reply": reply}

    async def run_tools(state: Run) -> dict[str, Any]:
        bound = tools(state["asked"])
        calls = _calls(state["messages"][-1])
        return {"messages": [await bound.result(call) for call in calls]}

    def after(state: Run) -> str:
        return "tools" if _calls(state["messages"][-1]) else END

    graph = StateGraph(Run)
    graph.add_node("ask", ask)
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", after, ["tools", END])
    graph.add_edge("tools", "ask")
    return graph.compile(checkpointer=checkpointer)


def _calls(message: Message) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    return [call for call in listed if isinstance(call, dict)][:_MOST_CALLS]
