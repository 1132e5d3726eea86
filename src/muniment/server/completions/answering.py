"""Asking the model and telling its answer: whole, or as it comes."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from muniment.domain.conversation import MAX_MESSAGE_BYTES
from muniment.server.completions.exchange import Answer, Exchange
from muniment.server.completions.tool_calls import ToolCalls
from muniment.server.problems import Problem
from muniment.server.upstream import ChatModel, first_choice

Chunk = dict[str, Any]

DONE = b"data: [DONE]\n\n"
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
    _ready: list[bytes] = field(default_factory=list[bytes])
    _readable: asyncio.Event = field(default_factory=asyncio.Event)
    _taken: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False
    _parts: list[str] = field(default_factory=list[str])
    _size: int = 0
    _calls: ToolCalls = field(default_factory=ToolCalls)
    _held: list[Chunk] = field(default_factory=list[Chunk])
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask the model."""
        self._task = self.exchange.services.runs.start(self._produce())

    async def take(self) -> bytes:
        """The server-sent events that are ready, once there are any; nothing at the end. Ours are
        in the last chunk; an error is the last event, and then there is no [DONE]."""
        while not self._ready:
            if self._ended:
                return b""
            self._readable.clear()
            await self._readable.wait()
        events = b"".join(self._ready)
        self._ready.clear()
        self._taken.set()
        return events

    def leave(self) -> None:
        """The client is gone; nothing happens where the answer has ended."""
        if self._task is not None:
            self._task.cancel()

    async def _produce(self) -> None:
        runs = self.exchange.services.runs
        try:
            await self._pass_on()
        except asyncio.CancelledError:
            await runs.finish(self.exchange.keep(self._answer(partial=True)))
            raise
        except Exception as error:
            await runs.finish(self.exchange.keep(self._answer(partial=True)))
            await self._put(failure(error if isinstance(error, Problem) else interrupted()))
        else:
            kept = await runs.finish(self.exchange.keep(self._answer(partial=False)))
            self._held[-1] = {**self._held[-1], **kept.fields()}
            for chunk in self._held:
                await self._put(event(chunk))
            await self._put(DONE)
        finally:
            self._ended = True
            self._readable.set()

    async def _pass_on(self) -> None:
        """Pass chunks on but for the last ones: those wait for what is kept."""
        started = time.perf_counter()
        async for data, chunk in self.model.stream(self.exchange.prompt, self.options):
            choice = first_choice(chunk)
            self._collect(choice.get("delta"))
            if self._held or choice.get("finish_reason") is not None:
                self._held.append(chunk)
            else:
                await self._put(b"data: %b\n\n" % data)
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

    async def _put(self, events: bytes) -> None:
        """Wait for the client to take what is there; one that takes nothing has left."""
        self._ready.append(events)
        self._readable.set()
        if len(self._ready) >= _AHEAD:
            self._taken.clear()
            async with asyncio.timeout(self.exchange.services.settings.client_seconds):
                await self._taken.wait()


def event(value: Chunk) -> bytes:
    """`value` as a server-sent event."""
    return f"data: {json.dumps(value)}\n\n".encode()


def failure(problem: Problem) -> bytes:
    """The event that ends a stream which broke off."""
    return event({"error": problem.openai_error()})


def _last_chunk() -> Chunk:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-end",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": "",
        "choices": [choice],
    }


def interrupted() -> Problem:
    """What a stream that broke off for no reason of its own says."""
    return Problem(502, "interrupted", "the answer was interrupted")
