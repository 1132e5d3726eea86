"""Asking the model and telling its answer: whole, or as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from muniment.domain.conversation import MAX_MESSAGE_BYTES
from muniment.server.completions.exchange import Answer, Exchange
from muniment.server.completions.tool_calls import ToolCalls
from muniment.server.problems import Problem
from muniment.server.upstream import ChatModel, first_choice

Chunk = dict[str, Any]

_AHEAD = 64
_ENVELOPE = ("id", "created", "model", "usage")


async def whole(exchange: Exchange, model: ChatModel, options: Chunk) -> Chunk:
    """The reply in OpenAI's shape with our fields; Problem where the model fails."""
    started = time.perf_counter()
    try:
        reply = await model.complete(exchange.prompt, options)
    except BaseException:
        await exchange.services.runs.finish(exchange.keep(Answer("", partial=True)))
        raise
    exchange.services.metrics.step("model", time.perf_counter() - started)
    choice = first_choice(reply)
    message = choice["message"]
    calls = message.get("tool_calls")
    content = message.get("content")
    answer = Answer(
        content if isinstance(content, str) else "",
        calls if isinstance(calls, list) else (),
        envelope=envelope_of(reply, choice.get("finish_reason")),
    )
    kept = await exchange.services.runs.finish(exchange.keep(answer))
    return {**reply, **kept.fields()}


def envelope_of(reply: Chunk, finish_reason: object) -> Chunk:
    """What is kept of a reply beside its text, to tell it again."""
    known = {name: reply[name] for name in _ENVELOPE if name in reply}
    return {**known, "finish_reason": finish_reason}


@dataclass(slots=True)
class Stream:
    """A streamed answer: produced on its own, so that a slow or leaving client decides only how
    much of it there is, never whether what there is gets stored."""

    exchange: Exchange
    model: ChatModel
    options: Chunk
    _queue: asyncio.Queue[Chunk | Problem | None] = field(
        default_factory=lambda: asyncio.Queue(_AHEAD)
    )
    _parts: list[str] = field(default_factory=list[str])
    _size: int = 0
    _calls: ToolCalls = field(default_factory=ToolCalls)
    _held: list[Chunk] = field(default_factory=list[Chunk])
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask the model."""
        self._task = self.exchange.services.runs.start(self._produce())

    async def chunks(self) -> AsyncIterator[Chunk | Problem]:
        """The chunks as they come, ours in the last; a Problem last where it broke off."""
        try:
            while (item := await self._queue.get()) is not None:
                yield item
        finally:
            if self._task is not None:
                self._task.cancel()  # the client is gone; nothing happens where it has ended

    async def _produce(self) -> None:
        runs = self.exchange.services.runs
        try:
            await self._pass_on()
        except asyncio.CancelledError:
            await runs.finish(self.exchange.keep(self._answer(partial=True)))
            raise
        except Exception as error:
            await runs.finish(self.exchange.keep(self._answer(partial=True)))
            await self._put(error if isinstance(error, Problem) else _failed())
        else:
            kept = await runs.finish(self.exchange.keep(self._answer(partial=False)))
            self._held[-1] = {**self._held[-1], **kept.fields()}
            for chunk in self._held:
                await self._put(chunk)
        await self._put(None)

    async def _pass_on(self) -> None:
        """Pass chunks on but for the last ones: those wait for what is kept."""
        started = time.perf_counter()
        async for chunk in self.model.stream(self.exchange.prompt, self.options):
            choice = first_choice(chunk)
            self._collect(choice.get("delta"))
            if self._held or choice.get("finish_reason") is not None:
                self._held.append(chunk)
            else:
                await self._put(chunk)
        if not self._held:
            self._held.append(_last_chunk())
        self.exchange.services.metrics.step("model", time.perf_counter() - started)

    def _collect(self, delta: object) -> None:
        if not isinstance(delta, dict):
            return
        self._calls.add(delta.get("tool_calls"))
        content = delta.get("content")
        if isinstance(content, str) and content:
            self._size += len(content.encode("utf-8", "replace"))
            if self._size > MAX_MESSAGE_BYTES:
                raise Problem(502, "model-broken", "the model's answer is too long")
            self._parts.append(content)

    def _answer(self, *, partial: bool) -> Answer:
        envelope = None
        if not partial:
            reasons = [first_choice(chunk).get("finish_reason") for chunk in self._held]
            envelope = envelope_of(self._held[-1], next(filter(None, reasons), "stop"))
        return Answer("".join(self._parts), self._calls.whole(), partial, envelope)

    async def _put(self, item: Chunk | Problem | None) -> None:
        """Wait for the client to take what is there; one that takes nothing has left."""
        if not self._queue.full():
            self._queue.put_nowait(item)
            return
        async with asyncio.timeout(self.exchange.services.settings.client_seconds):
            await self._queue.put(item)


def _last_chunk() -> Chunk:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-end",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": "",
        "choices": [choice],
    }


def _failed() -> Problem:
    return Problem(502, "interrupted", "the answer was interrupted")
