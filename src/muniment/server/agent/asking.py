"""Asking the model for a run's next message: whole, or told on as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from muniment.domain.conversation import MAX_MESSAGE_BYTES
from muniment.server.completions.tool_calls import ToolCalls
from muniment.server.problems import Problem
from muniment.server.upstream import ChatModel, Message, first_choice

Tell = Callable[[Message], None]
"""Takes one chunk of OpenAI's stream."""

_SHAPE = ("id", "created", "model")


async def asked(
    model: ChatModel, messages: Sequence[Message], options: Message, tell: Tell | None
) -> Message:
    """The whole reply. With `tell`, its text is told on chunk by chunk while it comes, also that
    of a message which goes on to call tools; Problem where the model fails."""
    if tell is None:
        return await model.complete(messages, options)
    growing = _Growing()
    async for _, chunk in model.stream(messages, options):
        if text := growing.take(chunk):
            tell(growing.chunk(text))
    return growing.whole()


class _Growing:
    """A reply put together from its chunks."""

    def __init__(self) -> None:
        self._shape: Message = {}
        self._parts: list[str] = []
        self._size = 0
        self._calls = ToolCalls()
        self._reason: object = "stop"

    def take(self, chunk: Message) -> str:
        """Take one in; its text."""
        choice = first_choice(chunk)
        self._shape |= {name: chunk[name] for name in (*_SHAPE, "usage") if chunk.get(name)}
        self._reason = choice.get("finish_reason") or self._reason
        delta = choice.get("delta")
        given: dict[str, Any] = delta if isinstance(delta, dict) else {}
        self._calls.add(given.get("tool_calls"))
        content = given.get("content")
        text = content if isinstance(content, str) else ""
        self._size += len(text.encode("utf-8", "replace"))
        if self._size > MAX_MESSAGE_BYTES:
            raise Problem(502, "model-broken", "the model's answer is too long")
        self._parts.append(text)
        return text

    def chunk(self, text: str) -> Message:
        """The chunk that tells `text`."""
        shape = {name: self._shape[name] for name in _SHAPE if name in self._shape}
        delta = {"role": "assistant", "content": text}
        choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        return {**shape, "object": "chat.completion.chunk", "choices": choices}

    def whole(self) -> Message:
        """The reply."""
        message: Message = {"role": "assistant", "content": "".join(self._parts) or None}
        if calls := self._calls.whole():
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return {**self._shape, "object": "chat.completion", "choices": [choice]}
