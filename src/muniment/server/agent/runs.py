"""Runs: begun with a question of a session, and resumed by their id."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.tools import BaseTool
from langgraph.errors import GraphRecursionError

from muniment.domain.conversation import ConversationIdentity
from muniment.server.agent.asking import Tell
from muniment.server.agent.checkpoints import Saver, forget, saver_for, thread_of
from muniment.server.agent.graph import MOST_STEPS, Compiled, Run, graph_of, run_of
from muniment.server.agent.tools import Tools
from muniment.server.completions.answering import envelope_of
from muniment.server.completions.exchange import Answer, Exchange
from muniment.server.identity import Caller
from muniment.server.problems import Problem, not_found
from muniment.server.upstream import ChatModel, Message, first_choice
from muniment.wiring import OpenMemory


@dataclass(frozen=True, slots=True)
class Started:
    """What a run was asked, as its checkpoint holds it."""

    session_id: str
    question: str
    question_id: str
    project_id: str | None


class AgentRuns:
    """Runs an agent's graph, for whoever asks, with that caller's memory and nobody else's."""

    def __init__(
        self, memory: OpenMemory, model: ChatModel, saver: Saver, tools: Sequence[BaseTool]
    ) -> None:
        self._memory = memory
        self._model = model
        self._saver = saver
        self._tools = tuple(tools)

    async def begin(
        self,
        exchange: Exchange,
        caller: Caller,
        asked: dict[str, Any],
        tell: Tell | None = None,
    ) -> Message:
        """Run to the answer, whose text `tell` takes as it comes. A run of the same id goes on
        where it stopped. Problem where it cannot be finished now: it can be resumed where its
        question is stored."""
        config = self._config(exchange.identity, exchange.run_id or "")
        session_id = exchange.identity.session_id
        graph = self._graph(caller, session_id, kept=exchange.stored, tell=tell)
        known = exchange.stored and (await graph.aget_state(config)).values
        state = run_of(exchange.prompt, asked)
        return await self._finished(exchange, graph, None if known else state, config)

    async def resume(self, exchange: Exchange, caller: Caller) -> Message:
        """Go on where the run stopped."""
        config = self._config(exchange.identity, exchange.run_id or "")
        graph = self._graph(caller, exchange.identity.session_id, kept=True)
        return await self._finished(exchange, graph, None, config)

    async def started(self, caller: Caller, run_id: str) -> Started:
        """What the caller's run of this id was asked; Problem 404 where there is none."""
        identity = caller.conversation("any")
        graph = self._graph(caller, "any", kept=True)
        values = (await graph.aget_state(self._config(identity, run_id))).values
        if not values:
            raise not_found("run")
        asked = json.loads(values["asked"])
        return Started(
            asked["session_id"], asked["question"], asked["question_id"], asked["project_id"]
        )

    async def forget(self, identity: ConversationIdentity, run_ids: Iterable[str]) -> int:
        """Delete the checkpoints of a user's runs; how many there were."""
        return await forget(self._saver, identity, run_ids)

    async def _finished(
        self, exchange: Exchange, graph: Compiled, state: Run | None, config: Any
    ) -> Message:
        runs = exchange.services.runs
        try:
            final = await graph.ainvoke(
                state, config, durability="sync" if exchange.stored else None
            )
        except GraphRecursionError:
            await runs.finish(exchange.keep(Answer("", partial=True)))
            raise Problem(502, "agent-steps", "the run took too many steps") from None
        except BaseException:
            await runs.finish(exchange.keep(Answer("", partial=True)))
            raise
        reply: Message = json.loads(final["reply"])
        choice = first_choice(reply)
        content = choice["message"].get("content")
        answer = Answer(
            content if isinstance(content, str) else "",
            envelope=envelope_of(reply, choice.get("finish_reason")),
        )
        kept = await runs.finish(exchange.keep(answer))
        return {**reply, **kept.fields()}

    def _graph(
        self, caller: Caller, session_id: str, *, kept: bool, tell: Tell | None = None
    ) -> Compiled:
        def tools(asked: dict[str, Any]) -> Tools:
            if not asked["memory"]:
                return Tools(self._tools, None)
            owner = caller.owner(session_id, asked["project_id"])
            return Tools(self._tools, self._memory.agent_tools(owner))

        return graph_of(self._model, tools, self._saver if kept else None, tell)

    @staticmethod
    def _config(identity: ConversationIdentity, run_id: str) -> Any:
        thread = thread_of(identity, run_id)
        return {"configurable": {"thread_id": thread}, "recursion_limit": MOST_STEPS}


@asynccontextmanager
async def open_runs(
    memory: OpenMemory, model: ChatModel, url: str, tools: object | None
) -> AsyncIterator[AgentRuns]:
    """Runs whose checkpoints are kept beside the store of `url`. `tools` are LangChain's."""
    given = cast("Sequence[BaseTool]", tools or ())
    async with saver_for(url) as saver:
        yield AgentRuns(memory, model, saver, given)
